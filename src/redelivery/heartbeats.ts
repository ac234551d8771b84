import type { Clock } from '../clock/clock.ts'
import { Repeater } from '../clock/repeater.ts'
import type { ObserverHub } from '../observer.ts'
import type { WorkerRegistry } from './worker-registry.ts'

export interface HeartbeatsOptions {
  clock: Clock
  hub: ObserverHub
  registry: WorkerRegistry
  sweepMs: number
}

/** The heartbeats of a process that does not redeliver. Otherwise the sweeper sends them. */
export class Heartbeats {
  readonly #repeater: Repeater

  constructor({ clock, hub, registry, sweepMs }: HeartbeatsOptions) {
    const round = async (): Promise<number> => {
      await registry
        .heartbeat()
        .catch((error: unknown) => hub.emit({ type: 'error', during: 'heartbeat', error }))
      return sweepMs
    }
    const onStop = async (restarting: boolean): Promise<void> =>
      restarting ? undefined : registry.leave()
    this.#repeater = new Repeater({ clock, round, onStop })
  }

  start(): void {
    this.#repeater.start()
  }

  /** Waits for the heartbeat in progress, then removes this process from the registry. */
  stop(): Promise<void> {
    return this.#repeater.stop()
  }
}
