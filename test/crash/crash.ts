import { spawn } from '../processes.ts'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BugName } from './bugs.ts'
import { chance, seedFor } from './chance.ts'
import { pause } from './child.ts'
import { ProcessGroup, countProcesses, stderrFile } from './process-group.ts'
import { openView } from './dump.ts'
import type { Findings } from './verify.ts'
import { killMembers } from './killer.ts'
import { openLedger, type Ledger } from './ledger.ts'
import { pauseLate } from './pauser.ts'
import { phaseAt, type Phase } from './phases.ts'
import { createEnvironment, type FaultKind, type Environment } from './environment.ts'
import { cutConnections, disruptServer } from './storm.ts'

export interface CrashSettings {
  /** `sqlite:FILE`, `postgres` or `redis` for a private server, or a URL. Default: a new file. */
  store?: string
  seconds: number
  workers: number
  producers: number
  leaseMs: number
  seed: number
  /** Number of targeted pauses to make. */
  latePauses: number
  bug?: BugName
  /** Keep the ledgers and the store. */
  keep: boolean
}

export interface CrashResult extends Findings {
  seconds: number
  drain_ms: number
  seed: number
  store: Environment['kind']
  /** The kinds of faults that are possible on this store. */
  faults: FaultKind[]
  bug?: BugName
  /** The folder of the evidence, if it was kept. */
  evidence?: string
}

/**
 * Time without progress after which a run is stuck: far beyond lease + sweep + backoff, even on a
 * busy machine, and beyond the time in which a server notices that the holder of a lock is gone.
 */
const standstillMs = 30_000
const longestDrainMs = 300_000
/** Extra time for targeted pauses when the machine was too busy to make enough of them. */
const overtimeMs = 90_000
/** A planted bug shows early or not at all, and some prevent a run from ending. */
const patienceWithBugMs = 15_000
/** Maximum time for a process to exit on request, once all faults are over. */
const dismissMs = 20_000
const bootMs = 60_000

/** One run: inject faults, heal and drain, then verify the evidence offline. */
export async function crash(settings: CrashSettings): Promise<CrashResult> {
  const dir = mkdtempSync(join(tmpdir(), 'redrive-crash-'))
  const ledgers = join(dir, 'ledgers')
  mkdirSync(ledgers)
  const { seconds, seed, bug, keep } = settings
  try {
    const environment = await createEnvironment(settings.store, dir, countProcesses(settings))
    try {
      const drainMs = await runProcesses(settings, ledgers, environment)
      const findings = await check(ledgers, environment.url, settings.leaseMs)
      if (findings.unexpected_exits > 0) findings.examples.push(...readProcessErrors(ledgers))
      const { kind: store, faults } = environment
      const about = { store, faults, ...(bug ? { bug } : {}), ...(keep ? { evidence: dir } : {}) }
      return { ...findings, seconds, drain_ms: drainMs, seed, ...about }
    } finally {
      await environment.end(keep)
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

async function runProcesses(
  settings: CrashSettings,
  dir: string,
  environment: Environment,
): Promise<number> {
  const { bug } = settings
  const ledger = openLedger(dir, 'parent')
  const skewed = environment.kind !== 'sqlite'
  const processes = new ProcessGroup(
    { ...settings, dir, urlFor: environment.urlFor, skewed },
    ledger,
  )
  const abandon = (): void => processes.abandon()
  const interrupted = (): void => process.exit(130)
  process.once('exit', abandon)
  process.once('SIGINT', interrupted)
  try {
    await waitUntilReady(processes)
    ledger.write({ e: 'phase', name: 'chaos' })
    await makeFaults(settings, environment, processes, ledger)
    ledger.write({ e: 'phase', name: 'heal' })
    processes.wakeAll()
    const healedMs = performance.now()
    await Promise.all([
      processes.dismiss('producer', dismissMs),
      processes.dismiss('feeder', dismissMs),
    ])
    await waitUntilDrained(environment.url, bug ? patienceWithBugMs : longestDrainMs)
    const drainMs = Math.round(performance.now() - healedMs)
    await processes.dismiss('worker', dismissMs)
    ledger.write({ e: 'phase', name: 'frozen' })
    return drainMs
  } finally {
    processes.abandon()
    process.off('exit', abandon)
    process.off('SIGINT', interrupted)
  }
}

/** Injects all faults until the time is up. */
async function makeFaults(
  { seconds, leaseMs, seed, latePauses, bug }: CrashSettings,
  { proxies, server }: Environment,
  processes: ProcessGroup,
  ledger: Ledger,
): Promise<void> {
  const startMs = performance.now()
  const untilMs = startMs + seconds * 1000
  const phase = (): Phase => phaseAt(performance.now() - startMs, proxies.length > 0)
  const common = { leaseMs, untilMs, phase }
  const storm = { ...common, proxies, ledger, ...(server ? { server } : {}) }
  await Promise.all([
    killMembers({ ...common, processes, dice: chance(seed) }),
    cutConnections({ ...storm, dice: chance(seedFor(seed, 'cuts')) }),
    disruptServer({ ...storm, dice: chance(seedFor(seed, 'server')) }),
    pauseLate(processes, latePauses, untilMs + (bug ? patienceWithBugMs : overtimeMs)),
  ])
}

async function waitUntilReady(processes: ProcessGroup): Promise<void> {
  const deadline = performance.now() + bootMs
  while (!processes.members().every(({ ready }) => ready)) {
    if (performance.now() > deadline)
      throw new Error('the processes did not become ready; see stderr.log')
    await pause(20)
  }
}

/** Resolves when all letters are settled or there is no more progress. The verifier tells which. */
async function waitUntilDrained(store: string, withinMs: number): Promise<void> {
  const view = await openView(store)
  try {
    const startedMs = performance.now()
    let fewest = Infinity
    let movedMs = startedMs
    while (performance.now() - startedMs < withinMs) {
      const left = await view.unsettled()
      if (left === 0) return
      if (left < fewest) movedMs = performance.now()
      fewest = Math.min(fewest, left)
      if (performance.now() - movedMs > standstillMs) return
      await pause(100)
    }
  } finally {
    await view.close()
  }
}

/** The verifier is a separate program: it knows only the ledgers and the store. */
function check(ledgers: string, store: string, leaseMs: number): Promise<Findings> {
  const program = fileURLToPath(new URL('./check.ts', import.meta.url))
  const args = [program, ledgers, store, String(leaseMs)]
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(text) as Findings)
      else reject(new Error(`the verifier exited with code ${code}`))
    })
  })
}
