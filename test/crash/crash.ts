import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BugName } from './bugs.ts'
import { chance, seedFor } from './chance.ts'
import { pause } from './child.ts'
import { Crew, crewSize, stderrFile } from './crew.ts'
import { watchOver } from './dump.ts'
import type { Judgement } from './judge.ts'
import { killAround } from './killer.ts'
import { openLedger, type Ledger } from './ledger.ts'
import { pauseLate } from './pauser.ts'
import { phaseAt, type Phase } from './phases.ts'
import { setScene, type FaultKind, type Scene } from './scene.ts'
import { cutAround, strikeServer } from './storm.ts'

export interface CrashSettings {
  /** `sqlite:FILE`, `postgres` or `redis` for a server of its own, or a server's URL; a new file unless said. */
  store?: string
  seconds: number
  workers: number
  producers: number
  leaseMs: number
  seed: number
  /** How many targeted pauses to see. */
  latePauses: number
  bug?: BugName
  /** Leave the ledgers and the store where they are. */
  keep: boolean
}

export interface CrashResult extends Judgement {
  seconds: number
  drain_ms: number
  seed: number
  store: Scene['kind']
  /** The kinds of fault that could be made on this store. */
  faults: FaultKind[]
  bug?: BugName
  /** Where the evidence is, if it was kept. */
  evidence?: string
}

/**
 * No progress for so long means stuck: far beyond lease + sweep + backoff, even on a busy machine, and beyond the time
 * in which a server notices that the holder of a lock is gone.
 */
const standstillMs = 30_000
const longestDrainMs = 300_000
/** How much longer than the killer the targeted pauses may go on, when the machine was too busy to see enough. */
const overtimeMs = 90_000
/** A planted bug shows early or not at all, and some of them never let a run come to its end. */
const patienceWithBugMs = 15_000
/** How long a process may take to end when it is asked to, once everything works. */
const dismissMs = 20_000
const bootMs = 60_000

/** One run: faults for a while, then everybody healed and drained, then the offline checker over the evidence. */
export async function crash(settings: CrashSettings): Promise<CrashResult> {
  const dir = mkdtempSync(join(tmpdir(), 'redrive-crash-'))
  const ledgers = join(dir, 'ledgers')
  mkdirSync(ledgers)
  const { seconds, seed, bug, keep } = settings
  try {
    const scene = await setScene(settings.store, dir, crewSize(settings))
    try {
      const drainMs = await play(settings, ledgers, scene)
      const judgement = await check(ledgers, scene.url, settings.leaseMs)
      if (judgement.unexpected_exits > 0) judgement.examples.push(...lastWords(ledgers))
      const { kind: store, faults } = scene
      const about = { store, faults, ...(bug ? { bug } : {}), ...(keep ? { evidence: dir } : {}) }
      return { ...judgement, seconds, drain_ms: drainMs, seed, ...about }
    } finally {
      await scene.end(keep)
    }
  } finally {
    if (!keep) rmSync(dir, { recursive: true, force: true })
  }
}

/** The errors that processes died with. */
function lastWords(dir: string): string[] {
  const text = readFileSync(join(dir, stderrFile), 'utf8')
  return [...new Set(text.split('\n').filter((line) => /^\w*Error\b/.test(line)))].slice(-5)
}

async function play(settings: CrashSettings, dir: string, scene: Scene): Promise<number> {
  const { bug } = settings
  const ledger = openLedger(dir, 'parent')
  const skewed = scene.kind !== 'sqlite'
  const crew = new Crew({ ...settings, dir, urlFor: scene.urlFor, skewed }, ledger)
  const abandon = (): void => crew.abandon()
  const interrupted = (): void => process.exit(130)
  process.once('exit', abandon)
  process.once('SIGINT', interrupted)
  try {
    await everybodyReady(crew)
    ledger.write({ e: 'phase', name: 'chaos' })
    await makeFaults(settings, scene, crew, ledger)
    ledger.write({ e: 'phase', name: 'heal' })
    crew.wakeAll()
    const healedMs = performance.now()
    await Promise.all([crew.dismiss('producer', dismissMs), crew.dismiss('feeder', dismissMs)])
    await drained(scene.url, bug ? patienceWithBugMs : longestDrainMs)
    const drainMs = Math.round(performance.now() - healedMs)
    await crew.dismiss('worker', dismissMs)
    ledger.write({ e: 'phase', name: 'frozen' })
    return drainMs
  } finally {
    crew.abandon()
    process.off('exit', abandon)
    process.off('SIGINT', interrupted)
  }
}

/** Everything that goes wrong, until its time is up. */
async function makeFaults(
  { seconds, leaseMs, seed, latePauses, bug }: CrashSettings,
  { links, server }: Scene,
  crew: Crew,
  ledger: Ledger,
): Promise<void> {
  const startMs = performance.now()
  const untilMs = startMs + seconds * 1000
  const phase = (): Phase => phaseAt(performance.now() - startMs, links.length > 0)
  const common = { leaseMs, untilMs, phase }
  const storm = { ...common, links, ledger, ...(server ? { server } : {}) }
  await Promise.all([
    killAround({ ...common, crew, dice: chance(seed) }),
    cutAround({ ...storm, dice: chance(seedFor(seed, 'cuts')) }),
    strikeServer({ ...storm, dice: chance(seedFor(seed, 'server')) }),
    pauseLate(crew, latePauses, untilMs + (bug ? patienceWithBugMs : overtimeMs)),
  ])
}

async function everybodyReady(crew: Crew): Promise<void> {
  const deadline = performance.now() + bootMs
  while (!crew.members().every(({ ready }) => ready)) {
    if (performance.now() > deadline)
      throw new Error('the processes do not get ready: see stderr.log')
    await pause(20)
  }
}

/** Until nothing is left to do, or nothing moves any more. The checker tells which. */
async function drained(store: string, withinMs: number): Promise<void> {
  const view = await watchOver(store)
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

/** The checker is a program of its own: it knows nothing but the ledgers and the store. */
function check(ledgers: string, store: string, leaseMs: number): Promise<Judgement> {
  const program = fileURLToPath(new URL('./check.ts', import.meta.url))
  const args = [program, ledgers, store, String(leaseMs)]
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(text) as Judgement)
      else reject(new Error(`the checker ended with ${code}`))
    })
  })
}
