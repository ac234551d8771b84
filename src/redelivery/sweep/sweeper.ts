import type { Clock } from '../../clock/clock.ts'
import { Repeater } from '../../clock/repeater.ts'
import type { ObserverHub } from '../../observer.ts'
import type { Retention } from '../../policy/retention.ts'
import type { Store } from '../../store.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { applyRetention } from './apply-retention.ts'
import type { Chore } from './chore.ts'
import { parkBlocked } from './park-blocked.ts'
import { parkExpired } from './park-expired.ts'
import { parkUnhandled } from './park-unhandled.ts'
import { wakeHandled } from './wake-handled.ts'

export interface SweeperOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  registry: WorkerRegistry
  sweepMs: number
  retentionFor: (queue: string) => Retention | undefined
  /** Names of the queues whose letters are not run at present. */
  pausedQueues: () => Promise<ReadonlySet<string>>
  /** Further chores, run after the built-in ones. */
  chores?: readonly Chore[]
}

/** Pause before the next sweep when a chore has more to do. It lets other work run in between. */
const catchUpMs = 100

/** Every `sweepMs`, sends the heartbeat of this worker and runs all chores, one after the other. */
export class Sweeper {
  readonly #options: SweeperOptions
  readonly #chores: readonly Chore[]
  readonly #repeater: Repeater

  constructor(options: SweeperOptions) {
    const { clock, registry, retentionFor, pausedQueues, chores = [] } = options
    this.#options = options
    this.#chores = [
      applyRetention(retentionFor),
      parkExpired,
      parkUnhandled(registry, pausedQueues),
      parkBlocked(),
      wakeHandled(registry),
      ...chores,
    ]
    this.#repeater = new Repeater({
      clock,
      round: () => this.#round(),
      onStop: async (restarting) => (restarting ? undefined : registry.leave()),
    })
  }

  start(): void {
    this.#repeater.start()
  }

  /** Waits for the sweep in progress, then removes this worker from the registry. */
  stop(): Promise<void> {
    return this.#repeater.stop()
  }

  async #round(): Promise<number> {
    const { hub, sweepMs } = this.#options
    try {
      return (await this.#sweep()) ? Math.min(catchUpMs, sweepMs) : sweepMs
    } catch (error) {
      hub.emit({ type: 'error', during: 'sweep', error })
      return sweepMs
    }
  }

  /** Runs all chores. Resolves with whether one of them has more to do. */
  async #sweep(): Promise<boolean> {
    const { store, clock, hub, registry } = this.#options
    const context = { store, clock, hub, nowMs: clock.now() }
    const swept = { archived: 0, removed: 0, parked: 0 }
    let hasMore = false
    await registry.heartbeat()
    for (const chore of this.#chores) {
      const result = await chore(context)
      if (!result) continue
      swept.archived += result.archived ?? 0
      swept.removed += result.removed ?? 0
      swept.parked += result.parked ?? 0
      hasMore ||= result.hasMore ?? false
    }
    if (swept.archived + swept.removed + swept.parked > 0) hub.emit({ type: 'swept', ...swept })
    return hasMore
  }
}
