import { existsSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { lacksPrivate } from '../servers/private.ts'
import { bugNames, type BugName } from './bugs.ts'
import { runBulk, runBulkReplay, usage as bulkUsage } from './bulk/run.ts'
import { crash, type CrashSettings } from './crash.ts'
import { runMailbox, usage as mailboxUsage, UsageError } from './mailbox/run.ts'
import { runPipeline, usage as pipelineUsage } from './pipeline/run.ts'
import { runServer, usage as serverUsage } from './server/run.ts'
import { listViolations, formatVerdict, verdictOf, type Demands, type Verdict } from './verdict.ts'

const usage = `npm run crash -- [options]

  --store sqlite:FILE   a new file (default: a temporary one)
  --store postgres      a private server, which is also restarted; likewise redis
  --store postgres://…  a running server, in a new schema; never restarted. Likewise redis://…
  --seconds N           duration of the faults (default: 60)
  --workers N           processes that run letters (default: 5)
  --producers N         processes that capture (default: 2)
  --lease MS            length of a lease (default: 350)
  --seed N              seed of all random choices (default: 1)
  --a6 N                targeted pauses: late results that must be refused
                        (default: one per 3 s, on a server one per 6 s)
  --min-kills N         minimum number of kills (default: one per second, on a server one per 3 s)
  --bug NAME            plants a bug that must be caught: ${bugNames.join(', ')}
  --bugs                runs once with each bug
  --json FILE           writes the verdict
  --keep                keeps ledgers and store in the temporary folder

Crash test of mailboxes and loops:

${mailboxUsage}
Crash test of pipeline nodes:

${pipelineUsage}
Crash test of bulk actions:

${bulkUsage}
Crash test of the HTTP server:

${serverUsage}`

interface Request {
  settings: CrashSettings
  demands: Demands
  json: string | undefined
  everyBug: boolean
}

function parseRequest(args: string[]): Request {
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
      throw new UsageError(`--${name} must be an integer of at least ${least}`)
    return value
  }
  const hasBug = values.bug !== undefined || values.bugs
  const seconds = count('seconds', values.seconds ?? (hasBug ? '20' : '60'), 1)
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
    ...(values.bug === undefined ? {} : { bug: parseBugName(values.bug) }),
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
      '--bugs creates a store for each bug: use --store postgres or redis, or omit --store',
    )
  if (!store.startsWith('sqlite:'))
    throw new UsageError('--store must be sqlite:FILE, postgres, redis, postgres://… or redis://…')
  if (existsSync(store.slice('sqlite:'.length)))
    throw new UsageError(`${store} already exists; use a new file`)
  return store
}

function parseBugName(name: string): BugName {
  const known = bugNames.find((bug) => bug === name)
  if (!known) throw new UsageError(`unknown bug ${name}; known bugs: ${bugNames.join(', ')}`)
  return known
}

async function main(args: string[]): Promise<number> {
  const { settings, demands, json, everyBug } = parseRequest(args)
  const verdicts: Verdict[] = []
  for (const bug of everyBug ? bugNames : [settings.bug]) {
    const verdict = verdictOf(await crash({ ...settings, ...(bug ? { bug } : {}) }), demands)
    verdicts.push(verdict)
    process.stdout.write(everyBug ? formatCaught(verdict) : formatVerdict(verdict))
  }
  if (json !== undefined)
    writeFileSync(json, `${JSON.stringify(everyBug ? verdicts : verdicts[0], null, 2)}\n`)
  return verdicts.every(({ ok }) => ok) ? 0 : 1
}

function formatCaught(verdict: Verdict): string {
  const violations = listViolations(verdict).map((kind) => `${kind} ${verdict[kind]}`)
  return `${(verdict.bug ?? '').padEnd(22)}${verdict.ok ? 'caught' : 'NOT CAUGHT'}  ${violations.join(', ')}\n`
}

const args = process.argv.slice(2)
const ofMailboxes = args.some((arg) => /^--mailbox(=|$)/.test(arg))
const runCrashTest = chooseCrashTest()

function chooseCrashTest(): (args: string[]) => Promise<number> {
  if (args.includes('--bulk')) return runBulk
  if (args.some((arg) => /^--bulk-replay(=|$)/.test(arg))) return runBulkReplay
  if (args.includes('--pipeline')) return runPipeline
  if (args.includes('--server')) return runServer
  return ofMailboxes ? runMailbox : main
}

try {
  process.exitCode = await runCrashTest(args)
} catch (error) {
  const known =
    error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  process.stderr.write(
    known ? `${(error as Error).message}\n\n${usage}` : `${(error as Error).stack}\n`,
  )
  process.exitCode = 2
}
