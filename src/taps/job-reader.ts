import { sleep, systemClock, type Clock } from '../clock/clock.ts'
import { PollLoop, reportError } from './poll-loop.ts'
import type { Keep } from './tap.ts'

/** A job that may have failed for good. */
export interface FoundJob {
  id: string
  /**
   * Stores the letter of the job, then removes the job from its queue. False if the job stays
   * because it did not fail for good. Rejects if the letter could not be stored; then the job stays
   * as well.
   */
  carry(): Promise<boolean>
}

/** How far a turn has read. */
export interface Position {
  /** The number of jobs that were read and stay in their queue. */
  left: number
  /** The last of them. */
  last: string | undefined
}

/** The options that taps of job queues share. */
export interface JobTapOptions {
  keep: Keep
  /** Delay between two looks at the jobs. Default: 5 s. */
  pollMs?: number
  clock?: Clock
  /** Called with each error. Reading continues and retries by itself. */
  onError?: (error: unknown) => void
}

export interface JobReaderOptions extends Omit<JobTapOptions, 'keep'> {
  /** Rejects if the queue cannot be read. */
  checkQueue: () => Promise<unknown>
  /** A page of jobs after a position, oldest first. An empty page is the end. */
  readPage: (position: Position) => Promise<FoundJob[]>
}

/** After this many failures a turn ends: the store is probably unreachable. */
const maxFailures = 2000

/**
 * Reads the failed jobs of a queue again and again until it is stopped. A job whose letter cannot
 * be stored stays in its queue and does not block the others.
 */
export class JobReader {
  readonly #options: JobReaderOptions
  readonly #clock: Clock
  #loop: PollLoop | undefined
  #stopped = false

  constructor(options: JobReaderOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  async start(): Promise<void> {
    const { checkQueue, onError } = this.#options
    await checkQueue()
    if (this.#stopped) return
    this.#loop ??= new PollLoop(this.#clock, (signal) => this.#turn(signal), onError)
  }

  /** Resolves once the jobs that are being stored are stored. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#loop?.stop()
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { pollMs = 5000, readPage, onError } = this.#options
    let failures = 0
    let position: Position = { left: 0, last: undefined }
    while (!signal.aborted) {
      const jobs = await readPage(position)
      const results = await Promise.allSettled(jobs.map((job) => job.carry()))
      const failed = results.filter((result) => result.status === 'rejected')
      for (const { reason } of failed) reportError(onError, reason)
      failures += failed.length
      if (jobs.length === 0 || failures >= maxFailures) break
      const staying = jobs.filter((_, at) => {
        const result = results[at]!
        return result.status === 'rejected' || !result.value
      })
      position = {
        left: position.left + staying.length,
        last: staying.at(-1)?.id ?? position.last,
      }
    }
    await sleep(this.#clock, pollMs, signal)
  }
}
