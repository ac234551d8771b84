import { Clients } from './captures.ts'
import type { Dice } from './dice.ts'
import type { House } from './house.ts'
import { People } from './people.ts'
import type { SimProcess } from './sim-process.ts'

type Happening = (process: SimProcess) => void

/** What happens at random: captures, people, and everything that can befall a process. */
export class Happenings {
  readonly clients: Clients
  readonly #house: House
  readonly #dice: Dice
  readonly #kinds: Record<string, Happening>
  readonly #weights: Record<string, number>

  constructor(house: House, dice: Dice) {
    this.#house = house
    this.#dice = dice
    this.clients = new Clients(house, dice.fork())
    const clients = this.clients
    const people = new People(house, dice.fork())
    const calm: Record<string, [number, Happening]> = {
      capture: [10, (process) => clients.capture(process)],
      captureMany: [2, (process) => clients.captureMany(process)],
      captureGuarded: [2, (process) => clients.captureGuarded(process)],
      captureAgain: [2, (process) => clients.captureAgain(process)],
      act: [8, (process) => people.act(process)],
      clear: [0.3, (process) => void people.clear(process)],
      stop: [1, (process) => void this.#stop(process)],
      start: [2, (process) => this.#start(process)],
      replace: [0.7, (process) => void this.#replace(process)],
    }
    const wild: Record<string, [number, Happening]> = {
      crash: [1, (process) => process.crash('killed')],
      pause: [1.5, (process) => process.pause(house.setup.leaseMs * dice.between(0.2, 4))],
      step: [house.setup.skewMs > 0 ? 1 : 0, (process) => this.#step(process)],
    }
    const all = house.setup.faulty ? { ...calm, ...wild } : calm
    this.#kinds = Object.fromEntries(
      Object.entries(all).map(([name, [, happening]]) => [name, happening]),
    )
    // Each run leaves some kinds out, and so goes deeper into the others.
    const weightOf = ([name, [weight]]: [string, [number, Happening]]): [string, number] => [
      name,
      name !== 'capture' && dice.chance(0.25) ? 0 : weight,
    ]
    this.#weights = Object.fromEntries(Object.entries(all).map(weightOf))
  }

  next(): void {
    const living = this.#house.living()
    if (living.length === 0) return
    const kind = this.#dice.weighted(this.#weights)
    this.#kinds[kind]!(this.#dice.pick(living))
  }

  /** Stops with a drain, and may be started again. */
  async #stop(process: SimProcess): Promise<void> {
    if (!process.started) return
    const { world, setup } = this.#house
    process.started = false
    const stop = ++process.stops
    const drainMs = setup.leaseMs * this.#dice.pick([0, 0.2, 2])
    world.log(`${process.name} stops, drain ${drainMs} ms`)
    await process.dlq!.stop({ drainMs })
    world.log(`${process.name} has stopped`)
    const isStopped = !process.started && process.stops === stop
    if (isStopped && process.settling > 0)
      world.violate(
        'LIVE',
        `${process.name} has stopped with ${process.settling} results under way`,
      )
  }

  #start(process: SimProcess): void {
    if (process.started) return
    this.#house.world.log(`${process.name} starts again`)
    process.started = true
    process.dlq!.start()
  }

  /** A rolling restart: the old process stops and closes, and a new one takes its place. */
  async #replace(process: SimProcess): Promise<void> {
    process.leaving = true
    const { setup, world } = this.#house
    const some = setup.queues.filter(() => this.#dice.chance(0.8))
    await this.#house.spawn(this.#dice.chance(0.3) ? some : setup.queues)
    if (this.#dice.chance(0.7)) await this.#stop(process)
    await process.dlq!.close()
    world.log(`${process.name} has closed`)
    process.alive = false
  }

  /** A wall clock jumps, of a process or of the store. */
  #step(process: SimProcess): void {
    const { setup, oracle, sightings, world } = this.#house
    const ms = Math.round(this.#dice.between(-1, 1) * setup.skewMs)
    if (ms < 0 && oracle.ledger.letters.count(({ state }) => state === 'pending') > 0)
      sightings.see('clock stepped back with a pending retry')
    if (this.#dice.chance(0.7)) return process.step(ms)
    world.log(`the store steps its clock by ${ms} ms`)
    this.#house.storeOffsetMs += ms
  }
}
