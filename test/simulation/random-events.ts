import { Clients } from './captures.ts'
import type { Dice } from './dice.ts'
import type { System } from './system.ts'
import { People } from './people.ts'
import type { SimProcess } from './sim-process.ts'

type RandomEvent = (process: SimProcess) => void

/** Random events: captures, actions of people, and faults of processes. */
export class RandomEvents {
  readonly clients: Clients
  readonly #system: System
  readonly #dice: Dice
  readonly #kinds: Record<string, RandomEvent>
  readonly #weights: Record<string, number>

  constructor(system: System, dice: Dice) {
    this.#system = system
    this.#dice = dice
    this.clients = new Clients(system, dice.fork())
    const clients = this.clients
    const people = new People(system, dice.fork())
    const calm: Record<string, [number, RandomEvent]> = {
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
    const wild: Record<string, [number, RandomEvent]> = {
      crash: [1, (process) => process.crash('killed')],
      pause: [1.5, (process) => process.pause(system.setup.leaseMs * dice.between(0.2, 4))],
      step: [system.setup.skewMs > 0 ? 1 : 0, (process) => this.#stepClock(process)],
    }
    const all = system.setup.faulty ? { ...calm, ...wild } : calm
    this.#kinds = Object.fromEntries(
      Object.entries(all).map(([name, [, randomEvent]]) => [name, randomEvent]),
    )
    // Each run omits some kinds of events, and so explores the others more deeply.
    const weightOf = ([name, [weight]]: [string, [number, RandomEvent]]): [string, number] => [
      name,
      name !== 'capture' && dice.chance(0.25) ? 0 : weight,
    ]
    this.#weights = Object.fromEntries(Object.entries(all).map(weightOf))
  }

  next(): void {
    const processes = this.#system.liveProcesses()
    if (processes.length === 0) return
    const kind = this.#dice.weighted(this.#weights)
    this.#kinds[kind]!(this.#dice.pick(processes))
  }

  /** Stops with a drain, and may be started again. */
  async #stop(process: SimProcess): Promise<void> {
    if (!process.started) return
    const { scheduler, setup } = this.#system
    process.started = false
    const stop = ++process.stops
    const drainMs = setup.leaseMs * this.#dice.pick([0, 0.2, 2])
    scheduler.log(`${process.name} stops, drain ${drainMs} ms`)
    await process.dlq!.stop({ drainMs })
    scheduler.log(`${process.name} has stopped`)
    const isStopped = !process.started && process.stops === stop
    if (isStopped && process.settling > 0)
      scheduler.violate(
        'LIVE',
        `${process.name} has stopped with ${process.settling} results in flight`,
      )
  }

  #start(process: SimProcess): void {
    if (process.started) return
    this.#system.scheduler.log(`${process.name} starts again`)
    process.started = true
    process.dlq!.start()
  }

  /** A rolling restart: the old process stops and closes, and a new one takes its place. */
  async #replace(process: SimProcess): Promise<void> {
    process.leaving = true
    const { setup, scheduler } = this.#system
    const some = setup.queues.filter(() => this.#dice.chance(0.8))
    await this.#system.spawn(this.#dice.chance(0.3) ? some : setup.queues)
    if (this.#dice.chance(0.7)) await this.#stop(process)
    await process.dlq!.close()
    scheduler.log(`${process.name} has closed`)
    process.alive = false
  }

  /** Steps the wall clock of a process or of the store. */
  #stepClock(process: SimProcess): void {
    const { setup, oracle, coverage, scheduler } = this.#system
    const ms = Math.round(this.#dice.between(-1, 1) * setup.skewMs)
    if (ms < 0 && oracle.ledger.letters.count(({ state }) => state === 'pending') > 0)
      coverage.record('clock stepped back with a pending retry')
    if (this.#dice.chance(0.7)) return process.step(ms)
    scheduler.log(`the store steps its clock by ${ms} ms`)
    this.#system.storeOffsetMs += ms
  }
}
