import type { Job, JobsOptions, Queue } from 'bullmq'
import { checkKeys, keysOf } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import { lineage } from '../letter/lineage.ts'
import {
  decodeJobData,
  encodeJobData,
  readJobOptions,
  readJobTime,
  sendJob,
  toOrigin,
} from './job.ts'
import { JobReader, type FoundJob, type JobTapOptions, type Position } from './job-reader.ts'
import { onceIdOf } from './returned-message.ts'
import type { ForeignLetter, ReturnedLetter, Tap } from './tap.ts'

export interface BullMqTapOptions extends JobTapOptions {
  /** The queue whose failed jobs are read, and to which they return. The tap does not close it. */
  queue: Pick<Queue, 'name' | 'waitUntilReady' | 'getRanges' | 'getJob' | 'add'>
}

const optionKeys = keysOf<BullMqTapOptions>({
  queue: true,
  keep: true,
  pollMs: true,
  clock: true,
  onError: true,
})

/**
 * Reads the jobs of a BullMQ queue that failed in all their attempts, and removes them there. Jobs
 * that belong to a parent stay: removing them would release the parent.
 */
export function bullmqTap(options: BullMqTapOptions): Tap {
  checkKeys('bullmqTap options', options, optionKeys, { code: 'INVALID_CONFIG' })
  return new BullMqTap(options)
}

const pageJobs = 100

class BullMqTap implements Tap {
  readonly #options: BullMqTapOptions
  readonly #reader: JobReader

  constructor(options: BullMqTapOptions) {
    this.#options = options
    this.#reader = new JobReader({
      ...options,
      checkQueue: () => options.queue.waitUntilReady(),
      readPage: (position) => this.#readPage(position),
    })
  }

  start(): Promise<void> {
    return this.#reader.start()
  }

  stop(): Promise<void> {
    return this.#reader.stop()
  }

  /**
   * Adds the job again, with its name, data and options, as a new job. Its id is the same for the
   * same generation of the same letter, and BullMQ adds no second job with an id that exists.
   */
  async returnToSource(letter: ReturnedLetter, generation: number): Promise<void> {
    const { name, options } = letter.origin
    if (name === undefined)
      throw new RedriveError(
        'INVALID_INPUT',
        `the name of job ${letter.messageId} is unknown (metadata.origin.name): an edit has removed it`,
      )
    const data = decodeJobData(letter)
    const jobId = returnedIdOf(letter, generation)
    const { queue } = this.#options
    await sendJob(queue.name, () =>
      queue.add(name, data, { ...returnedOptions(readJobOptions(options)), jobId }),
    )
  }

  async #readPage({ left }: Position): Promise<FoundJob[]> {
    const ids = await this.#options.queue.getRanges(['failed'], left, left + pageJobs - 1, true)
    return ids.map((id) => ({ id, carry: () => this.#carry(id) }))
  }

  async #carry(id: string): Promise<boolean> {
    const { queue, keep } = this.#options
    const job = await queue.getJob(id)
    if (!job || job.parentKey !== undefined) return false
    await keep(toForeignLetter(queue.name, id, job))
    // Somebody may have retried the job in BullMQ meanwhile.
    if (!(await job.isFailed())) return false
    await job.remove({ removeChildren: false })
    return true
  }
}

function toForeignLetter(queue: string, id: string, job: Job): ForeignLetter {
  const { name, opts, attemptsMade, timestamp, processedOn, finishedOn, priority } = job
  const failedReason = job.failedReason || 'the job failed without a reason'
  const stack = job.stacktrace?.at(-1)
  const enqueuedAt = readJobTime(timestamp)
  const failedAt = readJobTime(finishedOn)
  return {
    source: queue,
    reason: failedReason,
    error: { name: readErrorName(stack), message: failedReason, ...(stack ? { stack } : {}) },
    deliveries: attemptsMade,
    ...(enqueuedAt === undefined ? {} : { enqueuedAt }),
    ...(failedAt === undefined ? {} : { failedAt }),
    ...encodeJobData(job.data),
    headers: readLineage(id),
    messageId: id,
    // A job that somebody retries in BullMQ can fail again under the same id.
    death: `${finishedOn ?? attemptsMade}`,
    origin: toOrigin({
      queue,
      name,
      options: opts,
      priority,
      attemptsMade,
      addedAt: enqueuedAt,
      startedAt: readJobTime(processedOn),
      failedAt,
      processedBy: job.processedBy,
    }),
  }
}

/** The name of the error, from the first line of its stack: BullMQ stores only its message. */
function readErrorName(stack = ''): string {
  return /^([A-Za-z_$][\w$]{0,99})(?=:| \[\w+\]|\n|$)/.exec(stack)?.[1] ?? 'Error'
}

/**
 * Options that a returned job does not have. It is due now, has no parent or schedule, and must not
 * be dropped as a duplicate of another job.
 */
const droppedOptions = [
  'jobId',
  'delay',
  'timestamp',
  'deduplication',
  'repeat',
  'repeatJobKey',
  'prevMillis',
  'parent',
  'failParentOnFailure',
  'continueParentOnFailure',
  'ignoreDependencyOnFailure',
  'removeDependencyOnFailure',
]

function returnedOptions(options: Record<string, unknown>): JobsOptions {
  const kept = Object.entries(options).filter(([key]) => !droppedOptions.includes(key))
  return Object.fromEntries(kept)
}

/** The id of a returned job has its lineage: its data and options must not change. */
const returnedId = /^redrive-(\d{1,6})-[0-9a-f]{16}-(.+)$/s

function returnedIdOf(letter: ReturnedLetter, generation: number): string {
  const original = readLineage(letter.messageId)[lineage.originalId] ?? letter.messageId
  const once = onceIdOf(letter, generation).slice(0, 16)
  // BullMQ does not allow colons.
  return `redrive-${generation}-${once}-${encodeURIComponent(original.toWellFormed())}`
}

function readLineage(id: string): Record<string, string> {
  const [, replays, original] = returnedId.exec(id) ?? []
  if (replays === undefined || original === undefined) return {}
  return { [lineage.replays]: replays, [lineage.originalId]: decodeId(original) }
}

/** The id may come from anyone. */
function decodeId(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
