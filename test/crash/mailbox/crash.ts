import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMailbox } from '../../../src/connect/mailbox.ts'
import { chance, seedFor } from '../chance.ts'
import { pause } from '../child.ts'
import { stderrFile } from '../crew.ts'
import type { Fact as StormFact } from '../ledger.ts'
import { phaseAt, type Phase } from '../phases.ts'
import { cutAround, strikeServer } from '../storm.ts'
import type { BugName } from './bugs.ts'
import { names } from './child.ts'
import { Crew, pauseMs } from './crew.ts'
import { keptLetters, keptMessages, keptReplies } from './dump.ts'
import { judge, type Judgement } from './judge.ts'
import { killAround } from './killer.ts'
import { openLedger, readLedgers, type Fact, type Ledger } from './ledger.ts'
import { setScene, type Broker, type Scene } from './scene.ts'

export interface CrashSettings {
  /** `sqlite:FILE`, or `postgres`, `redis` or `rabbitmq` for a server of its own; a new file unless said. */
  mailbox?: string
  seconds: number
  consumers: number
  seed: number
  bug?: BugName
  /** Leave the ledgers where they are. */
  keep: boolean
}

export interface CrashResult extends Judgement {
  broker: Broker
  seconds: number
  seed: number
  drain_ms: number
  bug?: BugName
  evidence?: string
}

const bootMs = 60_000
/** How long everything may take to come to rest: receipts lapse, loops that lost their broker come back within half a minute. */
const longestDrainMs = 150_000
/** A planted bug shows early or not at all, and some of them never let a run come to its end. */
const patienceWithBugMs = 12_000
/** Longer than a pause: when nothing is there and no consumer writes for so long, nothing is under way either. */
const quietMs = 2 * pauseMs
const dismissMs = 40_000

/** One run: faults for a while, then everybody healed and drained, then the judge over the evidence. */
export async function crash(settings: CrashSettings): Promise<CrashResult> {
  const dir = mkdtempSync(join(tmpdir(), 'redrive-mail-crash-'))
  const ledgers = join(dir, 'ledgers')
  mkdirSync(ledgers)
  const letters = `sqlite:${join(dir, 'letters.db')}`
  const { seconds, seed, bug, keep } = settings
  try {
    const scene = await setScene(settings.mailbox, dir, settings.consumers + 1)
    const { broker, url } = scene
    try {
      const { drainMs, left } = await play(settings, { dir: ledgers, letters, scene })
      const judgement = judge({
        lines: readLedgers(ledgers),
        dead: [...(await keptMessages(url)), ...(await keptLetters(letters))],
        replies: await keptReplies(url),
        left,
        exact: broker !== 'rabbitmq',
      })
      if (judgement.broken > 0) judgement.examples.push(...lastWords(ledgers))
      const about = { broker, seconds, seed, drain_ms: drainMs }
      return { ...judgement, ...about, ...(bug ? { bug } : {}), ...(keep ? { evidence: dir } : {}) }
    } finally {
      await scene.end()
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

interface Stage {
  dir: string
  letters: string
  scene: Scene
}

async function play(
  settings: CrashSettings,
  { dir, letters, scene }: Stage,
): Promise<{ drainMs: number; left: number }> {
  const ledger = openLedger(dir, 'parent')
  const crew = new Crew({ ...settings, dir, letters, urlFor: scene.urlFor }, ledger)
  const abandon = (): void => crew.abandon()
  const interrupted = (): void => process.exit(130)
  process.once('exit', abandon)
  process.once('SIGINT', interrupted)
  try {
    await everybodyReady(crew, dir)
    ledger.write({ e: 'phase', name: 'chaos' })
    crew.produce()
    // On a slow machine it may take longer to start than the faults last, and would send nothing.
    await everybodyReady(crew, dir)
    await makeFaults(settings, scene, crew, ledger)
    ledger.write({ e: 'phase', name: 'heal' })
    crew.wakeAll()
    const healedMs = performance.now()
    await crew.dismiss('producer', dismissMs)
    const requests = await openMailbox(scene.url, { name: names.requests })
    const withinMs = settings.bug ? patienceWithBugMs : longestDrainMs
    const count = (): Promise<number> => requests.approximateCount()
    await drained(count, dir, withinMs)
    const drainMs = Math.round(performance.now() - healedMs)
    await crew.dismiss('consumer', dismissMs)
    ledger.write({ e: 'phase', name: 'frozen' })
    const left = await count()
    await requests.close()
    return { drainMs, left }
  } finally {
    crew.abandon()
    process.off('exit', abandon)
    process.off('SIGINT', interrupted)
  }
}

/** As in the storms over stores: what is cut is cut for up to eight times as long. */
const shortCutMs = 350

/** Everything that goes wrong, until its time is up. */
async function makeFaults(
  { seconds, seed }: CrashSettings,
  { links, server }: Scene,
  crew: Crew,
  ledger: Ledger,
): Promise<void> {
  const startMs = performance.now()
  const untilMs = startMs + seconds * 1000
  const phase = (): Phase => phaseAt(performance.now() - startMs, links.length > 0)
  const common = { untilMs, phase }
  const storm = {
    ...common,
    links,
    leaseMs: shortCutMs,
    // It tells of cuts and of the server, which are the same here.
    ledger: { write: (fact: StormFact) => ledger.write(fact as Fact) },
    ...(server ? { server } : {}),
  }
  await Promise.all([
    killAround({ ...common, crew, dice: chance(seed) }),
    links.length > 0 ? cutAround({ ...storm, dice: chance(seedFor(seed, 'cuts')) }) : undefined,
    strikeServer({ ...storm, dice: chance(seedFor(seed, 'server')) }),
  ])
}

async function everybodyReady(crew: Crew, dir: string): Promise<void> {
  const deadline = performance.now() + bootMs
  while (!crew.members().every((member) => crew.isReady(member))) {
    if (performance.now() > deadline)
      throw new Error(`the processes do not get ready: ${lastWords(dir).join('; ')}`)
    await pause(20)
  }
}

/** Until nothing was there and nobody did anything for a while, or the time is up. The judge tells which. */
async function drained(count: () => Promise<number>, dir: string, withinMs: number): Promise<void> {
  const startedMs = Date.now()
  let busyMs = startedMs
  while (Date.now() - startedMs < withinMs && Date.now() - busyMs < quietMs) {
    busyMs = (await count()) > 0 ? Date.now() : Math.max(busyMs, lastWrittenMs(dir))
    await pause(100)
  }
}

/** Consumers write about messages only. Some brokers count what waits, and not what somebody has. */
function lastWrittenMs(dir: string): number {
  const files = readdirSync(dir).filter((file) => /^consumer.*\.jsonl$/.test(file))
  return Math.max(...files.map((file) => statSync(join(dir, file)).mtimeMs))
}
