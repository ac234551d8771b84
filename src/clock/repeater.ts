import { sleep, type Clock } from './clock.ts'
import { Lifecycle } from './lifecycle.ts'

export interface RepeaterOptions {
  clock: Clock
  /** One round. Must not reject. Resolves with the pause until the next round. */
  round: () => Promise<number>
  /** Runs after the last round of a stop. `restarting`: it starts again right afterwards. */
  onStop?: (restarting: boolean) => Promise<void>
}

/** Runs rounds of work, one at a time: the first at once, each further one after a pause. */
export class Repeater {
  readonly #lifecycle: Lifecycle

  constructor({ clock, round, onStop }: RepeaterOptions) {
    let stopping: AbortController
    let rounds: Promise<void>
    const repeat = async ({ signal }: AbortController): Promise<void> => {
      while (!signal.aborted) await sleep(clock, await round(), signal)
    }
    this.#lifecycle = new Lifecycle({
      start: () => {
        stopping = new AbortController()
        rounds = repeat(stopping)
      },
      stop: async () => {
        stopping.abort()
        await rounds
        await onStop?.(this.#lifecycle.wanted)
      },
    })
  }

  start(): void {
    this.#lifecycle.start()
  }

  /** Waits for the round in progress. */
  stop(): Promise<void> {
    return this.#lifecycle.stop()
  }
}
