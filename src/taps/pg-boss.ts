import { createHash } from 'node:crypto'
import type { JobWithMetadata, PgBoss, SendOptions } from 'pg-boss'
import { checkKeys, keysOf } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import { lineage } from '../letter/lineage.ts'
import { read } from '../letter/reading.ts'
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

export interface PgBossTapOptions extends JobTapOptions {
  /** Started by the caller, who also stops it. */
  boss: Pick<PgBoss, 'getQueue' | 'findJobs' | 'deleteJob' | 'send'>
  /** A dead letter queue, or a queue without one. */
  queue: string
}

const optionKeys = keysOf<PgBossTapOptions>({
  boss: true,
  queue: true,
  keep: true,
  pollMs: true,
  clock: true,
  onError: true,
})

/**
 * Reads the jobs that pg-boss moved to a dead letter queue, or the failed jobs of a queue without
 * one, and removes them there.
 */
export function pgBossTap(options: PgBossTapOptions): Tap {
  checkKeys('pgBossTap options', options, optionKeys, { code: 'INVALID_CONFIG' })
  return new PgBossTap(options)
}

type FailedJob = JobWithMetadata<unknown>

const pageJobs = 200

class PgBossTap implements Tap {
  readonly #options: PgBossTapOptions
  readonly #reader: JobReader

  constructor(options: PgBossTapOptions) {
    this.#options = options
    this.#reader = new JobReader({
      ...options,
      checkQueue: () => this.#checkQueue(),
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
   * Sends the job to the queue in which it failed, with its data and options. Its id is the same
   * for the same generation of the same letter, and pg-boss adds no second job with an id that
   * exists.
   */
  async returnToSource(letter: ReturnedLetter, generation: number): Promise<void> {
    const { boss } = this.#options
    const { queue = this.#options.queue, options } = letter.origin
    const data = decodeJobData(letter) as object | null
    const id = returnedIdOf(letter, generation)
    const sent = { ...(readJobOptions(options) as SendOptions), id }
    await sendJob(queue, async () => {
      if ((await boss.send(queue, data, sent)) !== null) return
      // The job exists already, or the policy of the queue allows no further one.
      const [existing] = await boss.findJobs(queue, { id })
      if (existing) return
      const { singletonKey } = sent
      throw new RedriveError(
        'MAILBOX_FULL',
        `could not return the letter to the queue ${queue}: its policy allows no further job${singletonKey === undefined ? '' : ` with singletonKey ${JSON.stringify(singletonKey)}`} now`,
      )
    })
  }

  async #checkQueue(): Promise<void> {
    const { boss, queue } = this.#options
    if ((await boss.getQueue(queue)) === null)
      throw new RedriveError(
        'MAILBOX_UNAVAILABLE',
        `pg-boss has no queue ${queue}: create it with boss.createQueue, or correct the name`,
      )
  }

  async #readPage({ last }: Position): Promise<FoundJob[]> {
    const { boss, queue } = this.#options
    const after = last === undefined ? {} : { after: last }
    const jobs = await boss.findJobs(queue, { limit: pageJobs, ...after })
    return jobs.map((job) => ({ id: job.id, carry: () => this.#carry(job) }))
  }

  async #carry(job: FailedJob): Promise<boolean> {
    const { boss, queue, keep } = this.#options
    if (!isDead(queue, job)) return false
    await keep(toForeignLetter(queue, job, isMoved(job) ? await this.#findOriginal(job) : job))
    // Somebody may have retried the job in pg-boss meanwhile.
    const [now] = await boss.findJobs(queue, { id: job.id })
    if (!now || !isDead(queue, now)) return now === undefined
    await boss.deleteJob(queue, job.id)
    return true
  }

  /**
   * The job that failed: one in a dead letter queue has the options of that queue. Undefined if
   * pg-boss has removed it.
   */
  async #findOriginal({ sourceName, sourceId }: FailedJob): Promise<FailedJob | undefined> {
    const { boss } = this.#options
    if (sourceName === null || sourceId === null) return undefined
    if ((await boss.getQueue(sourceName)) === null) return undefined
    return (await boss.findJobs(sourceName, { id: sourceId }))[0]
  }
}

/** Whether the job failed for good, or was moved to this queue because it failed in another one. */
function isDead(queue: string, job: FailedJob): boolean {
  if (job.state === 'failed') return true
  return isMoved(job) && job.sourceName !== queue && ['created', 'retry'].includes(job.state)
}

/** A job that was moved to a dead letter queue, and then failed there, is a failed job of it. */
function isMoved({ state, sourceName }: FailedJob): boolean {
  return sourceName !== null && state !== 'failed'
}

function toForeignLetter(
  queue: string,
  job: FailedJob,
  original: FailedJob | undefined,
): ForeignLetter {
  const moved = isMoved(job)
  const output = moved ? job.sourceOutput : job.output
  const error = readError(output)
  const enqueuedAt = readJobTime(moved ? job.sourceCreatedOn : job.createdOn)
  const failedAt = readJobTime(moved ? job.createdOn : job.completedOn)
  const source = (moved ? job.sourceName : undefined) ?? queue
  const messageId = (moved ? job.sourceId : undefined) ?? job.id
  return {
    source,
    reason: error.message,
    error,
    deliveries: ((moved ? job.sourceRetryCount : job.retryCount) ?? 0) + 1,
    ...(enqueuedAt === undefined ? {} : { enqueuedAt }),
    ...(failedAt === undefined ? {} : { failedAt }),
    ...encodeJobData(job.data),
    headers: readLineage(messageId),
    messageId,
    // A job that somebody retries in pg-boss can fail again under the same id.
    death: moved ? job.id : (failedAt ?? ''),
    origin: toOrigin({
      queue: source,
      options: original && optionsOf(original),
      priority: original?.priority,
      policy: original?.policy,
      output,
      addedAt: enqueuedAt,
      startedAt: readJobTime(original?.startedOn),
      failedAt,
      ...(moved ? { deadLetterQueue: queue, rootId: job.sourceRootId } : {}),
    }),
  }
}

/** The options for sending the job again. It is due now. */
function optionsOf(job: FailedJob): object {
  const { priority, retryLimit, retryDelay, retryBackoff, retryDelayMax, deadLetter } = job
  const { expireInSeconds, deleteAfterSeconds, heartbeatSeconds, singletonKey, groupId } = job
  const options = {
    priority,
    retryLimit,
    retryDelay,
    retryBackoff,
    retryDelayMax: retryBackoff ? retryDelayMax : null,
    expireInSeconds,
    deleteAfterSeconds,
    heartbeatSeconds,
    singletonKey,
    deadLetter,
    group: groupId ? { id: groupId, ...(job.groupTier ? { tier: job.groupTier } : {}) } : null,
  }
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== null && value !== undefined),
  )
}

/** The error of the worker as pg-boss stores it: a serialized error, or any other JSON. */
function readError(output: unknown): NonNullable<ForeignLetter['error']> {
  const text = (key: string): string | undefined => {
    const value = read(output, key)
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const message = text('message') ?? text('value') ?? 'the job failed without a reason'
  const stack = text('stack')
  return { name: text('name') ?? 'Error', message, ...(stack === undefined ? {} : { stack }) }
}

/**
 * The id of a returned job, a UUID of version 8. It has the generation of the letter, since the
 * data and options of the job must not change, and check digits by which it is recognised.
 */
function returnedIdOf(letter: ReturnedLetter, generation: number): string {
  const once = onceIdOf(letter, generation)
  const count = Math.min(generation, 0xffff).toString(16).padStart(4, '0')
  const start = `${once.slice(0, 8)}-${count}-8${once.slice(8, 11)}-8${once.slice(11, 14)}-${once.slice(14, 20)}`
  return `${start}${checkDigits(start)}`
}

function checkDigits(start: string): string {
  return createHash('sha256').update(`redrive ${start}`).digest('hex').slice(0, 6)
}

function readLineage(id: string): Record<string, string> {
  const isReturned =
    id.length === 36 && id[14] === '8' && id.slice(30) === checkDigits(id.slice(0, 30))
  return isReturned ? { [lineage.replays]: String(Number.parseInt(id.slice(9, 13), 16)) } : {}
}
