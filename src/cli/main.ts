#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { addArchive } from './commands/archive.ts'
import { addConfig } from './commands/config.ts'
import { addCopy } from './commands/copy.ts'
import { addDemo } from './commands/demo.ts'
import { addDoctor } from './commands/doctor.ts'
import { addExport } from './commands/export.ts'
import { addImport } from './commands/import.ts'
import { addList } from './commands/list.ts'
import { addPipeline } from './commands/pipeline.ts'
import { addRestore } from './commands/restore.ts'
import { addRetry } from './commands/retry.ts'
import { addReview } from './commands/review.ts'
import { addShow } from './commands/show.ts'
import { addStats } from './commands/stats.ts'
import { addWork } from './commands/work.ts'
import { RedriveError } from '../errors.ts'
import { explain, tell, unwritten } from './failures.ts'

const examples = `
Examples:
  redrive list                                what is kept, newest first
  redrive list --state parked --since 2h      what came and needs a person
  redrive show 01995c3a                       one letter, by the start of its id
  redrive retry --queue charge-card           run them again now
  redrive list --json --all | jq .queue       for programs: a letter a line

The store is sqlite:redrive.db in this folder, unless --store, REDRIVE_STORE or
redrive.yaml names another one.`

interface Manifest {
  version: string
  engines: { node: string }
}

const manifest = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as Manifest

/** An older Node lacks what stores are made with, and fails later in words that tell nobody why. */
function mustBeNewEnough(): void {
  const { node } = process.versions
  const needed = manifest.engines.node.replace('>=', '')
  if (node.localeCompare(needed, 'en', { numeric: true }) >= 0) return
  throw new RedriveError(
    'INVALID_CONFIG',
    `redrive needs Node ${needed} or newer, and runs on ${node}: install a newer one, and put it first in PATH`,
  )
}

function program(): Command {
  const redrive = new Command('redrive')
    .description('Looks after dead letters: what failed, why, and what becomes of it.')
    .version(manifest.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .option('--store <url>', 'where the letters are, as in sqlite:redrive.db')
    .option('--json', 'print JSON for programs')
    .addHelpText('after', examples)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: () => {} })
    .exitOverride()
  for (const add of [
    addList,
    addShow,
    addStats,
    addRetry,
    addReview,
    addArchive,
    addRestore,
    addDoctor,
    addImport,
    addExport,
    addCopy,
    addWork,
    addPipeline,
    addConfig,
    addDemo,
  ])
    add(redrive)
  return redrive
}

/** Whoever reads our output may stop early, as `head` does. Otherwise, what is missing of it is said. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  const explained = unwritten(error)
  process.stderr.write(tell(explained))
  process.exit(explained.exit)
})

try {
  mustBeNewEnough()
  await program().parseAsync()
} catch (error) {
  const explained = explain(error)
  process.stderr.write(tell(explained))
  process.exitCode = explained.exit
}
