import type { WriteStream } from 'node:tty'
import { Command } from 'commander'
import { RedriveError } from '../errors.ts'
import { checkOneOf } from '../check/keys.ts'
import { isSupportedNode, nodeAdvice } from '../backends/sqlite/node-version.ts'
import { explainError, formatError, type ExplainedError } from './error-output.ts'
import type { GlobalOptions } from './open.ts'
import { terminal } from './terminal.ts'
import { readVersion } from './version.ts'

const examples = `
Examples:
  redrive list                                stored letters, newest first
  redrive list --state parked --since 2h      new letters that need a person
  redrive show 01995c3a                       one letter, by the start of its id
  redrive retry --queue charge-card           run them again now
  redrive list --json --all | jq .queue       one letter per line, for programs

The store is sqlite:redrive.db in this folder, unless --store, REDRIVE_STORE or
redrive.yaml names another one. With --server, commands use the API of a server.`

/**
 * Older versions of Node lack features that stores need, and would fail later with an unclear
 * error.
 */
function checkNodeVersion(): void {
  const { node } = terminal.versions
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

type AddCommand = (program: Command) => void

/**
 * The commands, as --help groups them. Each is loaded when it is needed, so that commands start
 * faster.
 */
const groups: { [heading: string]: { [names: string]: () => Promise<AddCommand> } } = {
  'Find letters': {
    list: async () => (await import('./commands/list.ts')).addList,
    show: async () => (await import('./commands/show.ts')).addShow,
    tail: async () => (await import('./commands/tail.ts')).addTail,
    search: async () => (await import('./commands/search.ts')).addSearch,
    diff: async () => (await import('./commands/diff.ts')).addDiff,
    lineage: async () => (await import('./commands/lineage.ts')).addLineage,
    views: async () => (await import('./commands/views.ts')).addViews,
  },
  'Act on letters': {
    retry: async () => (await import('./commands/retry.ts')).addRetry,
    replay: async () => (await import('./commands/replay.ts')).addReplay,
    resolve: async () => (await import('./commands/resolve.ts')).addResolve,
    fail: async () => (await import('./commands/fail.ts')).addFail,
    review: async () => (await import('./commands/review.ts')).addReview,
    'edit undo': async () => (await import('./commands/edit.ts')).addEdit,
    note: async () => (await import('./commands/note.ts')).addNote,
    park: async () => (await import('./commands/park.ts')).addPark,
    archive: async () => (await import('./commands/archive.ts')).addArchive,
    restore: async () => (await import('./commands/restore.ts')).addRestore,
    remove: async () => (await import('./commands/remove.ts')).addRemove,
    bulk: async () => (await import('./commands/bulk.ts')).addBulk,
    capture: async () => (await import('./commands/capture.ts')).addCapture,
  },
  'Groups, queues and reports': {
    'groups group': async () => (await import('./commands/groups.ts')).addGroups,
    queue: async () => (await import('./commands/queue.ts')).addQueue,
    stats: async () => (await import('./commands/stats.ts')).addStats,
    backtest: async () => (await import('./commands/backtest.ts')).addBacktest,
    alerts: async () => (await import('./commands/alerts.ts')).addAlerts,
    workers: async () => (await import('./commands/workers.ts')).addWorkers,
    doctor: async () => (await import('./commands/doctor.ts')).addDoctor,
  },
  'Move letters': {
    import: async () => (await import('./commands/import.ts')).addImport,
    export: async () => (await import('./commands/export.ts')).addExport,
    copy: async () => (await import('./commands/copy.ts')).addCopy,
    pipeline: async () => (await import('./commands/pipeline.ts')).addPipeline,
  },
  'Security and privacy': {
    audit: async () => (await import('./commands/audit.ts')).addAudit,
    tokens: async () => (await import('./commands/tokens.ts')).addTokens,
    keys: async () => (await import('./commands/keys.ts')).addKeys,
    erase: async () => (await import('./commands/erase.ts')).addErase,
  },
  'Run Redrive': {
    serve: async () => (await import('./commands/serve.ts')).addServe,
    work: async () => (await import('./commands/work.ts')).addWork,
    config: async () => (await import('./commands/config.ts')).addConfig,
    api: async () => (await import('./commands/api.ts')).addApi,
    demo: async () => (await import('./commands/demo.ts')).addDemo,
  },
}

/** Global options that are followed by a value. */
const valued = new Set(['--store', '--server', '--token'])

function findCommandName(args: readonly string[]): string | undefined {
  return args.find((arg, at) => !arg.startsWith('-') && !valued.has(args[at - 1] ?? ''))
}

/** Adds the named command; all commands if there is none of this name, as for `help`. */
async function addCommands(redrive: Command, name: string | undefined): Promise<void> {
  const isNamed = (names: string): boolean => name !== undefined && names.split(' ').includes(name)
  const isKnown = Object.values(groups).some((group) => Object.keys(group).some(isNamed))
  for (const [heading, commands] of Object.entries(groups)) {
    redrive.commandsGroup(`${heading}:`)
    const needed = Object.entries(commands).filter(([names]) => !isKnown || isNamed(names))
    for (const add of await Promise.all(needed.map(([, load]) => load()))) add(redrive)
  }
}

/** The program, with the command that the arguments name, or with all. */
export async function createProgram(args: readonly string[]): Promise<Command> {
  const redrive = new Command('redrive')
    .description('Manage dead letters: what failed, why, and what happens next.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .option('--store <url>', 'URL of the store, such as sqlite:redrive.db')
    .option('--server <url>', 'URL of a server, instead of a store')
    .option('--token <token>', 'token for the server; better in REDRIVE_TOKEN')
    .option('--json', 'print JSON, also for errors')
    .option('--jsonl', 'print JSON with each value on one line')
    .addHelpText('after', examples)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      getOutHelpWidth: () => helpWidthOf(terminal.stdout),
      getErrHelpWidth: () => helpWidthOf(terminal.stderr),
      outputError: () => {},
      writeOut: (text) => void terminal.stdout.write(text),
      // The help after a missing command, which is an error.
      writeErr: (text) => void (isJsonOutput() || terminal.stderr.write(text)),
    })
    .exitOverride()
  await addCommands(redrive, findCommandName(args))
  redrive.commandsGroup('Help:')
  redrive.hook('preAction', () => {
    if (redrive.opts<GlobalOptions>().jsonl) redrive.setOptionValue('json', true)
  })
  addHelp(redrive)
  // The package is loaded only if it is needed: other commands start faster.
  if (args[0] === 'complete' || args.includes('completion')) {
    const { addCompletion } = await import('./completion.ts')
    await addCompletion(redrive, args)
  } else
    redrive
      .command('completion <shell>')
      .description('print the completions of a shell: bash, zsh, fish')
  return redrive
}

/** The width of a terminal, otherwise 80 columns. */
function helpWidthOf(stream: WriteStream): number {
  return stream.isTTY ? stream.columns : 80
}

/** Whether --json or --jsonl was given, also if the rest of the command line is invalid. */
function isJsonOutput(): boolean {
  const end = terminal.argv.indexOf('--')
  const args = terminal.argv.slice(2, end < 0 ? undefined : end)
  return args.includes('--json') || args.includes('--jsonl')
}

/** Runs the command of the arguments. The terminal gets its output, errors and exit code. */
export async function runCommand(): Promise<void> {
  try {
    checkNodeVersion()
    const args = terminal.argv.slice(2)
    const program = await createProgram(args)
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    reportError(explainError(error))
  }
}

/** Prints an error as the command line wants it, and sets the exit code. */
export function reportError(explained: ExplainedError): void {
  terminal.stderr.write(formatError(explained, isJsonOutput()))
  terminal.exitCode = explained.exit
}
