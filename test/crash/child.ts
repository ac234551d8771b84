import { flushCompileCache } from 'node:module'
import { systemClock, type Clock } from '../../src/clock/clock.ts'
import { connect } from '../../src/connect/store.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { plantBug, type BugName } from './bugs.ts'
import { chance } from './chance.ts'
import { openLedger, type Ledger } from './ledger.ts'
import { codeOf } from './record-store.ts'

/** Settings of a child process, passed as JSON in its only argument. */
export interface ChildSettings {
  dir: string
  store: string
  name: string
  seed: number
  leaseMs: number
  bug?: BugName
  /** The store has its own clock, so this process may have a wrong one. */
  skewed?: boolean
  /** A producer that captures only on request. */
  onDemand?: boolean
  /** The name of the child that had this slot before. */
  previous?: string
}

/** Makes this process a child of the run: it exits with its parent. */
export function beChild(): { settings: ChildSettings; ledger: Ledger } {
  const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings
  process.once('disconnect', () => process.exit(3))
  return { settings, ledger: openLedger(settings.dir, settings.name) }
}

/** From an hour behind to a second ahead: more would only prolong the end of the run. */
const skewsMs = [0, -3_600_000, -5000, 1000] as const

function clockFor({ seed, skewed, bug }: ChildSettings): Clock {
  const wrong = skewed || bug === 'lease-by-own-clock'
  const skewMs = wrong ? chance(seed).pick(skewsMs) : 0
  return { ...systemClock, now: () => systemClock.now() + skewMs }
}

const reopenMs = 100

/**
 * Opens the queue on the store of the run, with the planted bug if there is one. Retries while the
 * store is unreachable, as a process supervisor would.
 */
export async function openQueue(
  settings: ChildSettings,
  ledger: Ledger,
  options: QueueOptions,
  wrap: (store: Store) => Store = (store) => store,
): Promise<{ store: Store; dlq: DeadLetterQueue }> {
  const clock = clockFor(settings)
  const storeClock = settings.bug === 'lease-by-own-clock' ? clock : systemClock
  for (;;) {
    const connected = await connect(settings.store, storeClock)
    const store = wrap(settings.bug ? plantBug(settings.bug, connected) : connected)
    try {
      const dlq = await DeadLetterQueue.open(store, { ...options, clock, worker: settings.name })
      return { store, dlq }
    } catch (error) {
      const code = codeOf(error)
      ledger.write({ e: 'open.fail', code })
      if (code !== 'STORE_UNAVAILABLE') throw error
      await store.close()
      await pause(reopenMs)
    }
  }
}

/**
 * Reports that the process works and handles SIGTERM with `finish`. Writes the compile cache for
 * later processes, in case this one is killed.
 */
export function ready(ledger: Ledger, finish: () => Promise<void>): void {
  process.once('SIGTERM', () => void finish().then(() => process.exit(0)))
  ledger.write({ e: 'ready' })
  flushCompileCache()
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
