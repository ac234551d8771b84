#!/usr/bin/env node
import { Command } from 'commander'
import { addAlerts } from './commands/alerts.ts'
import { addArchive } from './commands/archive.ts'
import { addAudit } from './commands/audit.ts'
import { addBacktest } from './commands/backtest.ts'
import { addBulk } from './commands/bulk.ts'
import { addConfig } from './commands/config.ts'
import { addCopy } from './commands/copy.ts'
import { addDemo } from './commands/demo.ts'
import { addDoctor } from './commands/doctor.ts'
import { addEdit } from './commands/edit.ts'
import { addExport } from './commands/export.ts'
import { addGroups } from './commands/groups.ts'
import { addImport } from './commands/import.ts'
import { addErase } from './commands/erase.ts'
import { addKeys } from './commands/keys.ts'
import { addList } from './commands/list.ts'
import { addNote } from './commands/note.ts'
import { addPark } from './commands/park.ts'
import { addPipeline } from './commands/pipeline.ts'
import { addQueue } from './commands/queue.ts'
import { addRemove } from './commands/remove.ts'
import { addReplay } from './commands/replay.ts'
import { addRestore } from './commands/restore.ts'
import { addRetry } from './commands/retry.ts'
import { addReview } from './commands/review.ts'
import { addServe } from './commands/serve.ts'
import { addShow } from './commands/show.ts'
import { addStats } from './commands/stats.ts'
import { addTokens } from './commands/tokens.ts'
import { addWork } from './commands/work.ts'
import { addWorkers } from './commands/workers.ts'
import { RedriveError } from '../errors.ts'
import { checkOneOf } from '../check/keys.ts'
import { isSupportedNode, nodeAdvice } from '../backends/sqlite/node-version.ts'
import { explainError, formatError, explainWriteError } from './error-output.ts'
import { readVersion } from './version.ts'

const examples = `
Examples:
  redrive list                                stored letters, newest first
  redrive list --state parked --since 2h      new letters that need a person
  redrive show 01995c3a                       one letter, by the start of its id
  redrive retry --queue charge-card           run them again now
  redrive list --json --all | jq .queue       one letter per line, for programs

The store is sqlite:redrive.db in this folder, unless --store, REDRIVE_STORE or
redrive.yaml names another one.`

/**
 * Older versions of Node lack features that stores need, and would fail later with an unclear
 * error.
 */
function checkNodeVersion(): void {
  const { node } = process.versions
  if (isSupportedNode(node)) return
  throw new RedriveError(
    'INVALID_CONFIG',
    `redrive does not run on Node ${node}: ${nodeAdvice}, and make it the first in PATH`,
  )
}

/** Replaces the help command of Commander, which exits with 0 for an unknown command. */
function addHelp(redrive: Command): void {
  redrive
    .helpCommand(false)
    .command('help [command...]')
    .description('print the help of a command')
    .action((names: string[]) => {
      const command = names.reduce((parent, name) => {
        const known = parent.commands.filter((one) => one.name() !== 'help')
        const found = known.find((one) => one.name() === name)
        if (found) return found
        checkOneOf(
          'command',
          name,
          known.map((one) => one.name()),
        )
        return parent
      }, redrive)
      command.outputHelp()
    })
}

function createProgram(): Command {
  const redrive = new Command('redrive')
    .description('Manage dead letters: what failed, why, and what happens next.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .option('--store <url>', 'URL of the store, such as sqlite:redrive.db')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: () => {} })
    .exitOverride()
  for (const add of [
    addList,
    addShow,
    addStats,
    addGroups,
    addRetry,
    addReplay,
    addReview,
    addEdit,
    addNote,
    addPark,
    addArchive,
    addRestore,
    addRemove,
    addBulk,
    addQueue,
    addBacktest,
    addAlerts,
    addAudit,
    addDoctor,
    addImport,
    addExport,
    addCopy,
    addServe,
    addWork,
    addWorkers,
    addPipeline,
    addTokens,
    addKeys,
    addErase,
    addConfig,
    addDemo,
  ])
    add(redrive)
  addHelp(redrive)
  return redrive
}

/** Whether --json was given, also if the rest of the command line is invalid. */
function isJsonOutput(): boolean {
  const end = process.argv.indexOf('--')
  return process.argv.slice(2, end < 0 ? undefined : end).includes('--json')
}

/** The reader of our output may stop early, as `head` does. Any other write error is reported. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  const explained = explainWriteError(error)
  process.stderr.write(formatError(explained, isJsonOutput()))
  process.exit(explained.exit)
})

try {
  checkNodeVersion()
  await createProgram().parseAsync()
} catch (error) {
  const explained = explainError(error)
  process.stderr.write(formatError(explained, isJsonOutput()))
  process.exitCode = explained.exit
}
