import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMailbox } from '../../../src/connect/mailbox.ts'
import { chance, seedFor } from '../chance.ts'
import { pause } from '../child.ts'
import { stderrFile } from '../process-group.ts'
import type { Fact as StormFact } from '../ledger.ts'
import { phaseAt, type Phase } from '../phases.ts'
import { cutConnections, disruptServer } from '../storm.ts'
import type { BugName } from './bugs.ts'
import { names } from './child.ts'
import { ProcessGroup, pauseMs } from './process-group.ts'
import { readDeadLetters, readDeadMessages, readReplies } from './dump.ts'
import { verify, type Findings } from './verify.ts'
import { killMembers } from './killer.ts'
import { openLedger, readLedgers, type Fact, type Ledger } from './ledger.ts'
import { createEnvironment, type Broker, type Environment } from './environment.ts'

export interface CrashSettings {
  /**
   * `sqlite:FILE`, or `postgres`, `redis` or `rabbitmq` for a private server. Default: a new file.
   */
  mailbox?: string
  seconds: number
  consumers: number
  seed: number
  bug?: BugName
  /** Keep the ledgers. */
  keep: boolean
}

export interface CrashResult extends Findings {
  broker: Broker
  seconds: number
  seed: number
  drain_ms: number
  bug?: BugName
  evidence?: string
}

const bootMs = 60_000
/**
 * Maximum time to drain: receipts expire, and loops reconnect to their broker within half a minute.
 */
const longestDrainMs = 150_000
/** A planted bug shows early or not at all, and some prevent a run from ending. */
const patienceWithBugMs = 12_000
/**
 * Longer than a pause: if the mailbox is empty and no consumer writes for this long, all is done.
 */
const quietMs = 2 * pauseMs
const dismissMs = 40_000

/** One run: inject faults, heal and drain, then verify the evidence. */
export async function crash(settings: CrashSettings): Promise<CrashResult> {
  const dir = mkdtempSync(join(tmpdir(), 'redrive-mail-crash-'))
  const ledgers = join(dir, 'ledgers')
  mkdirSync(ledgers)
  const letters = `sqlite:${join(dir, 'letters.db')}`
  const { seconds, seed, bug, keep } = settings
  try {
    const environment = await createEnvironment(settings.mailbox, dir, settings.consumers + 1)
    const { broker, url } = environment
    try {
      const { drainMs, left } = await runProcesses(settings, { dir: ledgers, letters, environment })
      const findings = verify({
        lines: readLedgers(ledgers),
        dead: [...(await readDeadMessages(url)), ...(await readDeadLetters(letters))],
        replies: await readReplies(url),
        left,
        exact: broker !== 'rabbitmq',
      })
      if (findings.broken > 0) findings.examples.push(...readProcessErrors(ledgers))
      const about = { broker, seconds, seed, drain_ms: drainMs }
      return { ...findings, ...about, ...(bug ? { bug } : {}), ...(keep ? { evidence: dir } : {}) }
    } finally {
      await environment.end()
    }
  } finally {
    if (!keep) rmSync(dir, { recursive: true, force: true })
  }
}

/** The last errors on the standard error of the processes. */
function readProcessErrors(dir: string): string[] {
  const text = readFileSync(join(dir, stderrFile), 'utf8')
  return [...new Set(text.split('\n').filter((line) => /^\w*Error\b/.test(line)))].slice(-5)
}

interface RunFiles {
  dir: string
  letters: string
  environment: Environment
}

async function runProcesses(
  settings: CrashSettings,
  { dir, letters, environment }: RunFiles,
): Promise<{ drainMs: number; left: number }> {
  const ledger = openLedger(dir, 'parent')
  const processes = new ProcessGroup(
    { ...settings, dir, letters, urlFor: environment.urlFor },
    ledger,
  )
  const abandon = (): void => processes.abandon()
  const interrupted = (): void => process.exit(130)
  process.once('exit', abandon)
  process.once('SIGINT', interrupted)
  try {
    await waitUntilReady(processes, dir)
    ledger.write({ e: 'phase', name: 'chaos' })
    processes.produce()
    // On a slow machine the producer may take longer to start than the faults last.
    await waitUntilReady(processes, dir)
    await makeFaults(settings, environment, processes, ledger)
    ledger.write({ e: 'phase', name: 'heal' })
    processes.wakeAll()
    const healedMs = performance.now()
    await processes.dismiss('producer', dismissMs)
    const requests = await openMailbox(environment.url, { name: names.requests })
    const withinMs = settings.bug ? patienceWithBugMs : longestDrainMs
    const count = (): Promise<number> => requests.approximateCount()
    await waitUntilDrained(count, dir, withinMs)
    const drainMs = Math.round(performance.now() - healedMs)
    await processes.dismiss('consumer', dismissMs)
    ledger.write({ e: 'phase', name: 'frozen' })
    const left = await count()
    await requests.close()
    return { drainMs, left }
  } finally {
    processes.abandon()
    process.off('exit', abandon)
    process.off('SIGINT', interrupted)
  }
}

/** Base duration of a cut, as in the storms over stores: up to eight times this. */
const shortCutMs = 350

/** Injects all faults until the time is up. */
async function makeFaults(
  { seconds, seed }: CrashSettings,
  { proxies, server }: Environment,
  processes: ProcessGroup,
  ledger: Ledger,
): Promise<void> {
  const startMs = performance.now()
  const untilMs = startMs + seconds * 1000
  const phase = (): Phase => phaseAt(performance.now() - startMs, proxies.length > 0)
  const common = { untilMs, phase }
  const storm = {
    ...common,
    proxies,
    leaseMs: shortCutMs,
    // The storm writes facts about cuts and the server only, which are the same in both ledgers.
    ledger: { write: (fact: StormFact) => ledger.write(fact as Fact) },
    ...(server ? { server } : {}),
  }
  await Promise.all([
    killMembers({ ...common, processes, dice: chance(seed) }),
    proxies.length > 0
      ? cutConnections({ ...storm, dice: chance(seedFor(seed, 'cuts')) })
      : undefined,
    disruptServer({ ...storm, dice: chance(seedFor(seed, 'server')) }),
  ])
}

async function waitUntilReady(processes: ProcessGroup, dir: string): Promise<void> {
  const deadline = performance.now() + bootMs
  while (!processes.members().every((member) => processes.isReady(member))) {
    if (performance.now() > deadline)
      throw new Error(`the processes did not become ready: ${readProcessErrors(dir).join('; ')}`)
    await pause(20)
  }
}

/** Resolves when the mailbox was empty and idle for a while, or the time is up. */
async function waitUntilDrained(
  count: () => Promise<number>,
  dir: string,
  withinMs: number,
): Promise<void> {
  const startedMs = Date.now()
  let busyMs = startedMs
  while (Date.now() - startedMs < withinMs && Date.now() - busyMs < quietMs) {
    busyMs = (await count()) > 0 ? Date.now() : Math.max(busyMs, lastWrittenMs(dir))
    await pause(100)
  }
}

/** Time of the last ledger line of a consumer. Some brokers do not count messages in flight. */
function lastWrittenMs(dir: string): number {
  const files = readdirSync(dir).filter((file) => /^consumer.*\.jsonl$/.test(file))
  return Math.max(...files.map((file) => statSync(join(dir, file)).mtimeMs))
}
