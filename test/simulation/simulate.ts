import { dice } from './dice.ts'
import { Happenings } from './happenings.ts'
import { heal } from './heal.ts'
import { House, type Plant } from './house.ts'
import { drawSetup, type Setup } from './settings.ts'
import { Trace } from './trace.ts'
import { judge } from './verdict.ts'
import { World, type Violation } from './world.ts'

/** What came of one run. */
export interface Outcome {
  seed: number
  setup: Setup
  violation: Violation | undefined
  /** Equal for equal runs. */
  fingerprint: string
  sightings: ReadonlyMap<string, number>
  trace: Trace
  events: number
  letters: number
  virtualMs: number
}

/** Plays one run: everything in it follows from its seed. */
export async function simulate(
  seed: number,
  options: { plant?: Plant; keepLines?: number } = {},
): Promise<Outcome> {
  const chance = dice(seed)
  const setup = drawSetup(chance.fork())
  const trace = new Trace(options.keepLines)
  const world = new World(chance.fork(), trace)
  const house = new House({ world, dice: chance.fork(), setup, plant: options.plant })
  const pace = chance.fork()
  const onRejection = (reason: unknown): void =>
    world.violate('UP', `unhandled rejection: ${String(reason)}`)
  process.on('unhandledRejection', onRejection)
  try {
    for (let n = 0; n < setup.processes; n++)
      await house.spawn(pace.chance(0.9) ? setup.queues : setup.queues.slice(1))
    const happenings = new Happenings(house, chance.fork())
    for (let step = 0; step < setup.steps && !world.violation; step++) {
      await world.pass(2 * pace.next() * setup.stepMs)
      if (!world.violation) happenings.next()
    }
    if (!world.violation) await heal(house, happenings.clients)
    if (!world.violation) await judge(house)
  } catch (error) {
    world.violate('UP', error instanceof Error ? (error.stack ?? error.message) : String(error))
  } finally {
    process.off('unhandledRejection', onRejection)
  }
  return {
    seed,
    setup,
    violation: world.violation,
    fingerprint: trace.fingerprint,
    sightings: house.sightings.counts(),
    trace,
    events: world.events,
    virtualMs: world.nowMs,
    letters: house.oracle.ledger.letters.size + house.oracle.ledger.gone.size,
  }
}
