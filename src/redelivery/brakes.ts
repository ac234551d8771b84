import type { Clock } from '../clock/clock.ts'
import type { DeadLetter } from '../letter/letter.ts'
import type { ObserverHub } from '../observer.ts'
import { Gate, type GateOptions, type GateStatus } from './gate.ts'
import { type BrakeSettings } from '../policy/flow-control.ts'
import type { Verdict } from './settle.ts'

export interface BrakeOptions {
  clock: Clock
  hub: ObserverHub
  maxConcurrent: number
  /** The brakes of a queue, and what its letters need, if that has a name. */
  brakesFor: (queue: string) => BrakeSettings & { dependency?: string }
  /** The brakes of something that queues need. */
  brakesOf: (dependency: string) => BrakeSettings
  /** How many living workers, this one included, run any of these queues. */
  workersFor: (queues: readonly string[]) => number
}

/** Queues that can be claimed from together, and how many letters. */
export interface Group {
  queues: string[]
  /** Changes with every letter that begins. */
  room: () => number
}

/**
 * The gates of this process: one before each queue, and one before each thing that queues say they need. A letter
 * has to pass both.
 */
export class Brakes {
  readonly #options: BrakeOptions
  readonly #queues = new Map<string, Gate>()
  readonly #dependencies = new Map<string, Gate>()
  /** Which queues need what, as far as they have been seen. */
  readonly #needed = new Map<string, Set<string>>()
  #turn = 0

  constructor(options: BrakeOptions) {
    this.#options = options
  }

  /** All queues that nothing holds back come as one group; where there is a limit, those that share it. */
  groups(queues: readonly string[]): Group[] {
    const free: string[] = []
    const limited: Group[] = []
    const sharing = new Map<string, string[]>()
    for (const queue of queues) {
      const own = this.#queue(queue).room()
      const { dependency } = this.#options.brakesFor(queue)
      const shared =
        dependency === undefined ? Infinity : this.#dependency(dependency, queue).room()
      if (own !== Infinity) limited.push({ queues: [queue], room: () => this.#roomOf(queue) })
      else if (shared === Infinity) free.push(queue)
      else sharing.set(dependency!, [...(sharing.get(dependency!) ?? []), queue])
    }
    for (const [name, members] of sharing)
      limited.push({ queues: members, room: () => this.#dependencies.get(name)!.room() })
    const groups = free.length > 0 ? [{ queues: free, room: () => Infinity }, ...limited] : limited
    return this.#rotated(groups)
  }

  /** How long until one of these queues that has to wait may be tried again. */
  waitMs(queues: readonly string[]): number {
    let soonest = Infinity
    for (const queue of queues)
      for (const gate of this.#gatesOf(queue)) soonest = Math.min(soonest, gate.waitMs())
    return soonest
  }

  begin(letter: DeadLetter): void {
    for (const gate of this.#gatesOf(letter.queue)) gate.begin(letter)
  }

  /** Learns from a run, and answers with what to make of it: when an outage made it fail, the letter is deferred. */
  end(letter: DeadLetter, verdict: Verdict): Verdict {
    const gates = this.#gatesOf(letter.queue)
    const isForgiven =
      verdict.kind === 'failed' && gates.some((gate) => gate.forgives(letter, verdict))
    for (const gate of gates) gate.end(letter, verdict)
    if (!isForgiven) return verdict
    return { ...verdict, deferMs: Math.max(...gates.map((gate) => gate.deferMs(letter))) }
  }

  status(): GateStatus[] {
    return [...this.#queues.values(), ...this.#dependencies.values()].map((gate) => gate.status())
  }

  #roomOf(queue: string): number {
    return Math.min(...this.#gatesOf(queue).map((gate) => gate.room()))
  }

  #gatesOf(queue: string): Gate[] {
    const own = this.#queue(queue)
    const { dependency } = this.#options.brakesFor(queue)
    return dependency === undefined ? [own] : [own, this.#dependency(dependency, queue)]
  }

  #queue(name: string): Gate {
    const there = this.#queues.get(name)
    if (there) return there
    const { brakesFor, workersFor } = this.#options
    const gate = this.#gate(
      'queue',
      name,
      () => brakesFor(name),
      () => workersFor([name]),
    )
    this.#queues.set(name, gate)
    return gate
  }

  #dependency(name: string, neededBy: string): Gate {
    const queues = this.#needed.get(name) ?? new Set()
    this.#needed.set(name, queues.add(neededBy))
    const there = this.#dependencies.get(name)
    if (there) return there
    const { brakesOf, workersFor } = this.#options
    const gate = this.#gate(
      'dependency',
      name,
      () => brakesOf(name),
      () => workersFor([...queues]),
    )
    this.#dependencies.set(name, gate)
    return gate
  }

  #gate(
    kind: GateOptions['kind'],
    name: string,
    settings: () => BrakeSettings,
    workers: () => number,
  ): Gate {
    const { clock, hub, maxConcurrent } = this.#options
    return new Gate({ kind, name, clock, hub, maxConcurrent, settings, workers })
  }

  /** Another group goes first each time, so that none lives off what the others leave. */
  #rotated(groups: Group[]): Group[] {
    const start = this.#turn++ % Math.max(1, groups.length)
    return [...groups.slice(start), ...groups.slice(0, start)]
  }
}
