/** What starting and stopping means for one component. */
export interface LifecycleSteps<Args extends unknown[]> {
  start: () => void
  /** Resolves once nothing runs any more. */
  stop: (...args: Args) => Promise<void>
}

/**
 * Start and stop for a component. Calls may come in any order and any number: the component never
 * runs twice at once, the last call decides in which state it ends, and all calls of `stop` during
 * one stop wait for the same end.
 */
export class Lifecycle<Args extends unknown[] = []> {
  readonly #steps: LifecycleSteps<Args>
  /** Desired state: true after start(), false after stop(). */
  #wanted = false
  #started = false
  #stopping: Promise<void> | undefined

  constructor(steps: LifecycleSteps<Args>) {
    this.#steps = steps
  }

  /**
   * True from start() until stop() is called. False while it stops, also if a restart is wanted.
   */
  get started(): boolean {
    return this.#started
  }

  /** The desired state. During a stop it is true if the component starts again afterwards. */
  get wanted(): boolean {
    return this.#wanted
  }

  /** Starts, or starts again once the stop in progress has ended. Does nothing when started. */
  start(): void {
    this.#wanted = true
    if (this.#started || this.#stopping) return
    this.#started = true
    this.#steps.start()
  }

  /** Stops, or joins the stop in progress. Arguments of a call that joins are ignored. */
  stop(...args: Args): Promise<void> {
    this.#wanted = false
    if (!this.#started) return this.#stopping ?? Promise.resolve()
    this.#started = false
    this.#stopping = this.#steps.stop(...args).finally(() => {
      this.#stopping = undefined
      if (this.#wanted) this.start()
    })
    return this.#stopping
  }
}
