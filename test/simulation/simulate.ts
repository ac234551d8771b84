import { dice } from './dice.ts'
import { RandomEvents } from './random-events.ts'
import { heal } from './heal.ts'
import { System, type PlantedBug } from './system.ts'
import { drawSetup, type Setup } from './settings.ts'
import { Trace } from './trace.ts'
import { verifyRun } from './verify.ts'
import { Scheduler, type Violation } from './scheduler.ts'

/** The result of one run. */
export interface Outcome {
  seed: number
  setup: Setup
  violation: Violation | undefined
  /** Equal for equal runs. */
  fingerprint: string
  coverage: ReadonlyMap<string, number>
  trace: Trace
  events: number
  letters: number
  virtualMs: number
}

/** Simulates one run, which depends on its seed only. */
export async function simulate(
  seed: number,
  options: { plant?: PlantedBug; keepLines?: number } = {},
): Promise<Outcome> {
  const chance = dice(seed)
  const setup = drawSetup(chance.fork())
  const trace = new Trace(options.keepLines)
  const scheduler = new Scheduler(chance.fork(), trace)
  const system = new System({ scheduler, dice: chance.fork(), setup, plant: options.plant })
  const pace = chance.fork()
  const onRejection = (reason: unknown): void =>
    scheduler.violate('UP', `unhandled rejection: ${String(reason)}`)
  process.on('unhandledRejection', onRejection)
  try {
    for (let n = 0; n < setup.processes; n++)
      await system.spawn(pace.chance(0.9) ? setup.queues : setup.queues.slice(1))
    const randomEvents = new RandomEvents(system, chance.fork())
    for (let step = 0; step < setup.steps && !scheduler.violation; step++) {
      await scheduler.advance(2 * pace.next() * setup.stepMs)
      if (!scheduler.violation) randomEvents.next()
    }
    if (!scheduler.violation) await heal(system, randomEvents.clients)
    if (!scheduler.violation) await verifyRun(system)
  } catch (error) {
    scheduler.violate('UP', error instanceof Error ? (error.stack ?? error.message) : String(error))
  } finally {
    process.off('unhandledRejection', onRejection)
  }
  return {
    seed,
    setup,
    violation: scheduler.violation,
    fingerprint: trace.fingerprint,
    coverage: system.coverage.counts(),
    trace,
    events: scheduler.events,
    virtualMs: scheduler.nowMs,
    letters: system.oracle.ledger.letters.size + system.oracle.ledger.gone.size,
  }
}
