import { Repeater } from '../clock/repeater.ts'
import { hasCode } from '../errors.ts'
import type { BulkAction } from '../letter/bulk-action.ts'
import { ActionChangedError, ActionRun, type ActionRunOptions } from './action-run.ts'
import type { ActionRecord, StoredAction } from './records.ts'

export interface BulkRunnerOptions extends ActionRunOptions {
  /** Name of this worker. */
  worker: string
  /** Another worker takes over an action whose record has not changed for so long. */
  leaseMs: number
  /** How often to look for actions while there are none. */
  sweepMs: number
  /** Whether this process has what the action needs. Another one may have it. */
  canRun: (action: BulkAction) => boolean
}

/**
 * Runs bulk actions, a step of each in turn. One worker at a time runs an action. Every write of an
 * action is a compare-and-set, so a worker that was paused and has lost its action notices it, and
 * letters are guarded by the versions of the plan. Clocks of machines disagree: whether another
 * worker is dead is measured on the monotonic clock of this process.
 */
export class BulkRunner {
  readonly #options: BulkRunnerOptions
  readonly #repeater: Repeater
  readonly #runs = new Map<string, ActionRun>()
  /** Actions of other workers: since when their records have not changed. */
  readonly #others = new Map<string, { version: number; sinceMs: number }>()

  constructor(options: BulkRunnerOptions) {
    this.#options = options
    this.#repeater = new Repeater({
      clock: options.clock,
      round: () => this.#round(),
      onStop: () => this.#release(),
    })
  }

  start(): void {
    this.#repeater.start()
  }

  /** Waits for the steps in progress. Other workers can take over at once. */
  stop(): Promise<void> {
    return this.#repeater.stop()
  }

  /** Looks for work now. */
  wake(): void {
    this.#repeater.wake()
  }

  async #round(): Promise<number> {
    const { records, hub, sweepMs } = this.#options
    let pauseMs = sweepMs
    try {
      for (const id of await records.activeIds())
        pauseMs = Math.min(pauseMs, await this.#stepOf(id))
    } catch (error) {
      this.#runs.clear()
      hub.emit({ type: 'error', during: 'bulk actions', error })
    }
    return pauseMs
  }

  /** One step of an action, if this worker runs it. Resolves with the pause until the next one. */
  async #stepOf(id: string): Promise<number> {
    const { records, pollMs } = this.#options
    try {
      const record = await records.load(id)
      const { state, progress } = record.action
      if (state !== 'running' && progress.waiting === 0) {
        this.#runs.delete(id)
        if (state === 'finished' || state === 'cancelled') await records.deactivate(id)
        return pollMs
      }
      const run = await this.#take(record)
      return run ? await run.step() : pollMs
    } catch (error) {
      this.#runs.delete(id)
      if (error instanceof ActionChangedError) return pollMs
      if (!hasCode(error, 'ACTION_NOT_FOUND')) throw error
      await records.deactivate(id)
      return pollMs
    }
  }

  /** The run of an action that this worker has or can take. */
  async #take(record: ActionRecord): Promise<ActionRun | undefined> {
    const { records, worker, canRun } = this.#options
    const { action, version } = record
    const { id } = action
    const run = this.#runs.get(id)
    if (run && action.worker === worker) {
      run.update(record)
      return run
    }
    if (!canRun(action)) return undefined
    if (action.worker !== undefined && action.worker !== worker && !this.#isDead(record))
      return undefined
    this.#others.delete(id)
    const taken = { ...action, worker }
    const takenVersion = await records.replace(taken, version)
    if (takenVersion === undefined) return undefined
    const opened = await ActionRun.open(this.#options, { action: taken, version: takenVersion })
    this.#runs.set(id, opened)
    return opened
  }

  /** Whether the record of an action has not changed for the length of a lease. */
  #isDead({ action, version }: ActionRecord): boolean {
    const { clock, leaseMs } = this.#options
    const seen = this.#others.get(action.id)
    if (seen?.version === version) return clock.mono() - seen.sinceMs >= leaseMs
    this.#others.set(action.id, { version, sinceMs: clock.mono() })
    return false
  }

  /** Gives up all actions, so that other workers can take over at once. */
  async #release(): Promise<void> {
    const { records, worker } = this.#options
    for (const id of this.#runs.keys())
      await records
        .update(id, (action) => (action.worker === worker ? withoutWorker(action) : action))
        .catch(() => undefined)
    this.#runs.clear()
  }
}

function withoutWorker(action: StoredAction): StoredAction {
  const { worker: _, ...rest } = action
  return rest
}
