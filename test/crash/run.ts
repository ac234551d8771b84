import { existsSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { lacksPrivate } from '../servers/private.ts'
import { bugNames, type BugName } from './bugs.ts'
import { crash, type CrashSettings } from './crash.ts'
import { runMailbox, usage as mailboxUsage, UsageError } from './mailbox/run.ts'
import { runPipeline, usage as pipelineUsage } from './pipeline/run.ts'
import { found, inWords, verdictOf, type Demands, type Verdict } from './verdict.ts'

const usage = `npm run crash -- [options]

  --store sqlite:FILE   a file that does not exist yet (a temporary one unless said)
  --store postgres      a server of its own, which is also restarted; likewise redis
  --store postgres://…  a server that runs, in a schema of its own; it is never restarted. redis://… likewise
  --seconds N           how long faults are injected (60)
  --workers N           processes that run letters (5)
  --producers N         processes that capture (2)
  --lease MS            length of a lease (350)
  --seed N              decides the choices of killer and producers (1)
  --a6 N                targeted pauses: late results to see refused (one per 3 s, or per 6 s on a server)
  --min-kills N         kills that the run must reach (one per second, or per 3 s on a server)
  --bug NAME            plants a bug, which must be caught: ${bugNames.join(', ')}
  --bugs                each of them in turn
  --json FILE           writes the verdict
  --keep                leaves ledgers and store in the temporary folder

or of mailboxes and their loops:

${mailboxUsage}
or of nodes of a pipeline:

${pipelineUsage}`

interface Request {
  settings: CrashSettings
  demands: Demands
  json: string | undefined
  everyBug: boolean
}

function read(args: string[]): Request {
  const { values } = parseArgs({
    args,
    options: {
      store: { type: 'string' },
      seconds: { type: 'string' },
      workers: { type: 'string', default: '5' },
      producers: { type: 'string', default: '2' },
      lease: { type: 'string', default: '350' },
      seed: { type: 'string', default: '1' },
      a6: { type: 'string' },
      'min-kills': { type: 'string' },
      bug: { type: 'string' },
      bugs: { type: 'boolean', default: false },
      json: { type: 'string' },
      keep: { type: 'boolean', default: false },
    },
  })
  const count = (name: string, text: string, least: number): number => {
    const value = Number(text)
    if (!Number.isInteger(value) || value < least)
      throw new UsageError(`--${name} must be a whole number from ${least} on`)
    return value
  }
  const planted = values.bug !== undefined || values.bugs
  const seconds = count('seconds', values.seconds ?? (planted ? '20' : '60'), 1)
  const onServer = /^(postgres|redis)/.test(values.store ?? '')
  const usualPauses = Math.floor(seconds / (onServer ? 6 : 3))
  const latePauses = count('a6', values.a6 ?? String(usualPauses), 0)
  const settings: CrashSettings = {
    seconds,
    latePauses,
    workers: count('workers', values.workers, 3),
    producers: count('producers', values.producers, 1),
    leaseMs: count('lease', values.lease, 50),
    seed: count('seed', values.seed, 0),
    keep: values.keep,
    ...(values.store === undefined ? {} : { store: newStore(values.store, values.bugs) }),
    ...(values.bug === undefined ? {} : { bug: bugNamed(values.bug) }),
  }
  const usualKills = /^(postgres|redis)/.test(values.store ?? '')
    ? Math.floor(seconds / 3)
    : seconds
  const demands = {
    minKills: count('min-kills', values['min-kills'] ?? String(usualKills), 0),
    latePauses,
    minRestarts: Math.floor(seconds / 15),
    minCuts: Math.floor(seconds / 3),
  }
  return { settings, demands, json: values.json, everyBug: values.bugs }
}

function newStore(store: string, everyBug: boolean): string {
  if (store === 'postgres' || store === 'redis') {
    const lacking = lacksPrivate[store]()
    if (lacking) throw new UsageError(lacking)
    return store
  }
  if (/^(postgres(ql)?|rediss?):/.test(store)) return store
  if (everyBug)
    throw new UsageError(
      '--bugs makes a new store for each bug: name a server, or leave --store out',
    )
  if (!store.startsWith('sqlite:'))
    throw new UsageError('--store must be sqlite:FILE, postgres, redis, postgres://… or redis://…')
  if (existsSync(store.slice('sqlite:'.length)))
    throw new UsageError(`${store} exists already: name a new file`)
  return store
}

function bugNamed(name: string): BugName {
  const known = bugNames.find((bug) => bug === name)
  if (!known) throw new UsageError(`no bug ${name}: known are ${bugNames.join(', ')}`)
  return known
}

async function main(args: string[]): Promise<number> {
  const { settings, demands, json, everyBug } = read(args)
  const verdicts: Verdict[] = []
  for (const bug of everyBug ? bugNames : [settings.bug]) {
    const verdict = verdictOf(await crash({ ...settings, ...(bug ? { bug } : {}) }), demands)
    verdicts.push(verdict)
    process.stdout.write(everyBug ? caughtLine(verdict) : inWords(verdict))
  }
  if (json !== undefined)
    writeFileSync(json, `${JSON.stringify(everyBug ? verdicts : verdicts[0], null, 2)}\n`)
  return verdicts.every(({ ok }) => ok) ? 0 : 1
}

function caughtLine(verdict: Verdict): string {
  const shown = found(verdict).map((kind) => `${kind} ${verdict[kind]}`)
  return `${(verdict.bug ?? '').padEnd(22)}${verdict.ok ? 'caught' : 'NOT CAUGHT'}  ${shown.join(', ')}\n`
}

const args = process.argv.slice(2)
const ofMailboxes = args.some((arg) => /^--mailbox(=|$)/.test(arg))
const runs = args.includes('--pipeline') ? runPipeline : ofMailboxes ? runMailbox : main

try {
  process.exitCode = await runs(args)
} catch (error) {
  const known =
    error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  process.stderr.write(
    known ? `${(error as Error).message}\n\n${usage}` : `${(error as Error).stack}\n`,
  )
  process.exitCode = 2
}
