import type { Clock } from '../../clock/clock.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { ObserverHub } from '../../observer.ts'
import type { FlowSettings } from '../../policy/flow-control.ts'
import type { RunResult } from '../run-result.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { Limiter, type LimiterStatus } from './limiter.ts'

export interface FlowControlOptions {
  clock: Clock
  hub: ObserverHub
  registry: WorkerRegistry
  maxConcurrent: number
  /** Settings of a queue, and the name of its dependency if it has one. */
  queueFlow: (queue: string) => FlowSettings & { dependency?: string }
  /** Settings of a dependency. */
  dependencyFlow: (dependency: string) => FlowSettings
}

/** Queues that are claimed from together. */
export interface ClaimGroup {
  queues: string[]
  /** Number of letters that may start now. Changes with every letter that starts. */
  capacity: () => number
}

/**
 * Flow control of this process: one limiter for each queue and one for each dependency that queues
 * name. A letter starts only if both allow it.
 */
export class FlowControl {
  readonly #options: FlowControlOptions
  readonly #queues = new Map<string, Limiter>()
  readonly #dependencies = new Map<string, { limiter: Limiter; queues: Set<string> }>()
  #rotation = 0

  constructor(options: FlowControlOptions) {
    this.#options = options
  }

  /** Unlimited queues form one group; limited ones are grouped by the limit that they share. */
  groups(queues: readonly string[]): ClaimGroup[] {
    const unlimited: string[] = []
    const groups: ClaimGroup[] = []
    const sharing = new Map<Limiter, string[]>()
    for (const queue of queues) {
      const shared = this.#dependencyLimiter(queue)
      if (this.#queueLimiter(queue).capacity() !== Infinity)
        groups.push({ queues: [queue], capacity: () => this.#capacityOf(queue) })
      else if (!shared || shared.capacity() === Infinity) unlimited.push(queue)
      else sharing.set(shared, [...(sharing.get(shared) ?? []), queue])
    }
    for (const [limiter, members] of sharing)
      groups.push({ queues: members, capacity: () => limiter.capacity() })
    if (unlimited.length > 0) groups.unshift({ queues: unlimited, capacity: () => Infinity })
    // Another group is first each time, so that no group only gets what the others leave.
    const start = this.#rotation++ % Math.max(1, groups.length)
    return [...groups.slice(start), ...groups.slice(0, start)]
  }

  /** Time until one of these queues has capacity again without any run ending. */
  waitMs(queues: readonly string[]): number {
    const limiters = queues.flatMap((queue) => this.#limitersOf(queue))
    return limiters.reduce((soonest, limiter) => Math.min(soonest, limiter.waitMs()), Infinity)
  }

  begin(letter: DeadLetter, atMs: number): void {
    for (const limiter of this.#limitersOf(letter.queue)) limiter.begin(letter, atMs)
  }

  /**
   * Learns from the result of a run. If an outage caused a failure, adds `deferMs` to the result.
   */
  end(letter: DeadLetter, result: RunResult, atMs: number): RunResult {
    const limiters = this.#limitersOf(letter.queue)
    const isOutage =
      result.kind === 'failed' && limiters.some((limiter) => limiter.blamesOutage(letter, result))
    for (const limiter of limiters) limiter.end(letter, result, atMs)
    if (!isOutage) return result
    return { ...result, deferMs: Math.max(...limiters.map((limiter) => limiter.deferMs(letter))) }
  }

  status(): LimiterStatus[] {
    const dependencies = [...this.#dependencies.values()].map(({ limiter }) => limiter)
    return [...this.#queues.values(), ...dependencies].map((limiter) => limiter.status())
  }

  #capacityOf(queue: string): number {
    return Math.min(...this.#limitersOf(queue).map((limiter) => limiter.capacity()))
  }

  #limitersOf(queue: string): Limiter[] {
    const shared = this.#dependencyLimiter(queue)
    return shared ? [this.#queueLimiter(queue), shared] : [this.#queueLimiter(queue)]
  }

  #queueLimiter(name: string): Limiter {
    const known = this.#queues.get(name)
    if (known) return known
    const { registry, queueFlow } = this.#options
    const settings = (): FlowSettings => queueFlow(name)
    const workers = (): number => registry.countWorkers([name])
    const limiter = new Limiter({ ...this.#options, kind: 'queue', name, settings, workers })
    this.#queues.set(name, limiter)
    return limiter
  }

  /** The limiter of the queue's dependency, if it has one. */
  #dependencyLimiter(queue: string): Limiter | undefined {
    const { registry, queueFlow, dependencyFlow } = this.#options
    const { dependency: name } = queueFlow(queue)
    if (name === undefined) return undefined
    const known = this.#dependencies.get(name)
    if (known) {
      known.queues.add(queue)
      return known.limiter
    }
    const queues = new Set([queue])
    const settings = (): FlowSettings => dependencyFlow(name)
    const workers = (): number => registry.countWorkers([...queues])
    const limiter = new Limiter({ ...this.#options, kind: 'dependency', name, settings, workers })
    this.#dependencies.set(name, { limiter, queues })
    return limiter
  }
}
