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
  #pause = new AbortController()

  constructor({ clock, round, onStop }: RepeaterOptions) {
    let stopping: AbortController
    let rounds: Promise<void>
    const repeat = async ({ signal }: AbortController): Promise<void> => {
      while (!signal.aborted) {
        this.#pause = new AbortController()
        const pauseMs = await round()
        await sleep(clock, pauseMs, AbortSignal.any([signal, this.#pause.signal]))
      }
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

  /** Starts the next round now, or right after the round in progress. */
  wake(): void {
    this.#pause.abort()
  }

  /** Waits for the round in progress. */
  stop(): Promise<void> {
    return this.#lifecycle.stop()
  }
}
