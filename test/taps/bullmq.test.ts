import { Queue, Worker, type Job, type JobsOptions } from 'bullmq'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bullmqTap } from '../../src/taps/bullmq.ts'
import { returnToSource } from '../../src/taps/return-to-source.ts'
import type { ForeignLetter, Keep, Tap } from '../../src/taps/tap.ts'
import { redisPlace, type Place } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'
import { inbox } from './inbox.ts'
import { openLetters } from './letters.ts'

const { url, missing } = backend('redis')

describe.skipIf(missing)('bullmqTap', () => {
  let place: Place
  let client: ReturnType<typeof createClient>
  let queue: Queue
  const taps: Tap[] = []
  const workers: Worker[] = []

  beforeEach(async () => {
    place = redisPlace(url)
    client = createClient({ url })
    client.on('error', () => {})
    await client.connect()
    queue = new Queue('orders', { connection: client, prefix: place.name })
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
    await Promise.all(workers.splice(0).map((worker) => worker.close(true)))
    await queue.close()
    client.destroy()
    await place.clear()
  })

  const started = async (keep: Keep, onError?: (error: unknown) => void): Promise<Tap> => {
    const tap = bullmqTap({ queue, keep, pollMs: 20, ...(onError ? { onError } : {}) })
    taps.push(tap)
    await tap.start()
    return tap
  }

  /** A worker, and the jobs that it has ended. */
  const work = (process: (job: Job) => Promise<unknown>) => {
    const ended = inbox<Job>()
    const worker = new Worker('orders', process, { connection: client, prefix: place.name })
    workers.push(worker)
    worker.on('completed', (job) => ended.put(job))
    worker.on('failed', (job) => {
      if (job && job.attemptsMade >= (job.opts.attempts ?? 1)) ended.put(job)
    })
    return { worker, ended }
  }

  /** Adds a job whose worker fails in every attempt. */
  const fails = async (data: unknown, opts: JobsOptions = {}): Promise<Job> => {
    const { worker, ended } = work(async () => {
      throw new TypeError('the card was declined')
    })
    await queue.add('charge', data, opts)
    const job = await ended.next()
    await worker.close()
    return job
  }

  const emptied = async (): Promise<void> => {
    await vi.waitUntil(async () => (await queue.getFailedCount()) === 0, { timeout: 30_000 })
  }

  it('stores a failed job with all that matters, then removes it', async () => {
    const kept = inbox<ForeignLetter>()
    await started(async (foreign) => kept.put(foreign))
    const { id } = await fails({ amount: 42 }, { attempts: 2, priority: 7, removeOnComplete: 5 })
    const foreign = await kept.next()
    expect(JSON.parse(Buffer.from(foreign.body).toString())).toEqual({ amount: 42 })
    expect(foreign).toMatchObject({
      source: 'orders',
      reason: 'the card was declined',
      error: {
        name: 'TypeError',
        message: 'the card was declined',
        stack: expect.stringContaining('bullmq.test'),
      },
      deliveries: 2,
      enqueuedAt: expect.any(String),
      failedAt: expect.any(String),
      contentType: 'application/json',
      headers: {},
      messageId: id,
      origin: { queue: 'orders', name: 'charge', priority: '7', attemptsMade: '2' },
    })
    expect(JSON.parse(foreign.origin['options']!)).toMatchObject({ attempts: 2, priority: 7 })
    await emptied()
    expect(await queue.getJob(id!)).toBeUndefined()
  })

  it('returns a job, which then succeeds with the same name, data and options', async () => {
    await using letters = await openLetters()
    const { dlq, keep, next } = letters
    const tap = await started(keep)
    const { id } = await fails(
      { amount: 42, note: 'ü' },
      { attempts: 2, priority: 7, backoff: { type: 'fixed', delay: 1 } },
    )
    const { letter } = await next('captured')
    expect(letter).toMatchObject({
      queue: 'orders',
      state: 'parked',
      attempts: 2,
      failure: { name: 'TypeError', message: 'the card was declined' },
      source: { kind: 'mailbox', messageId: id },
    })
    await emptied()
    dlq.handle('orders', returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    await next('resolved')
    const seen = inbox<Job>()
    const { ended } = work(async (job) => seen.put(job))
    const job = await seen.next()
    expect(job).toMatchObject({
      name: 'charge',
      data: { amount: 42, note: 'ü' },
      attemptsMade: 0,
      opts: { attempts: 2, priority: 7, backoff: { type: 'fixed', delay: 1 } },
    })
    expect((await ended.next()).id).toBe(job.id)
    expect(await queue.getCompletedCount()).toBe(1)
  })

  it('stores a job once after a crash between storing and removing it', async () => {
    await using letters = await openLetters()
    const { dlq, keep, keepAndCrash, next } = letters
    const crashing = await started(keepAndCrash)
    await fails({ amount: 1 })
    const { letter } = await next('captured')
    await crashing.stop()
    expect(await queue.getFailedCount()).toBe(1)
    await started(keep)
    expect(await next('duplicate')).toMatchObject({ letter: { id: letter.id } })
    await emptied()
    expect((await dlq.find()).items).toHaveLength(1)
  })

  it('adds no second job when a return is repeated, but another one after an edit', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await fails({ amount: 1 })
    const foreign = await kept.next()
    await emptied()
    await tap.returnToSource(foreign, 1)
    await tap.returnToSource(foreign, 1)
    expect(await queue.getWaitingCount()).toBe(1)
    await tap.returnToSource({ ...foreign, body: Buffer.from('{"amount":2}') }, 1)
    expect(await queue.getWaitingCount()).toBe(2)
  })

  it('counts the returns of a job over all its lives, without changing its data', async () => {
    await using letters = await openLetters()
    const { dlq, keep, next } = letters
    const tap = await started(keep)
    dlq.handle('orders', returnToSource(tap, { maxReplays: 2 }))
    dlq.start()
    const { worker } = work(async () => {
      throw new Error('always')
    })
    const { id } = await queue.add('charge', { amount: 1 })
    for (const replays of [0, 1]) {
      const { letter } = await next('captured')
      expect(letter.replays).toBe(replays)
      if (replays > 0) expect(letter.metadata).toMatchObject({ originalId: id })
      await dlq.retry(letter.id)
      await next('resolved')
    }
    const { letter } = await next('captured')
    expect(letter.replays).toBe(2)
    expect(Buffer.from((await dlq.get(letter.id))!.payload.bytes).toString()).toBe('{"amount":1}')
    await next('parked')
    await next('parked')
    await next('parked')
    await dlq.retry(letter.id)
    expect((await next('parked')).letter.failure.message).toContain(
      'returned to its source 2 times',
    )
    await worker.close()
  })

  it('reads past jobs that cannot be stored or read', async () => {
    const kept = inbox<string>()
    const errors = inbox<unknown>()
    await fails({ n: 'broken' })
    const [broken] = await queue.getFailed()
    // Written by a producer in another language, say: BullMQ itself cannot read it.
    await client.hSet(queue.toKey(broken!.id!), 'data', '{"not json')
    for (let n = 0; n < 3; n++) await fails({ n: 'bad' })
    await fails({ n: 'good' })
    await started(
      async ({ body }) => {
        const { n } = JSON.parse(Buffer.from(body).toString()) as { n: string }
        if (n === 'bad') throw new Error('too large')
        kept.put(n)
      },
      (error) => errors.put(error),
    )
    expect(await kept.next()).toBe('good')
    await vi.waitUntil(async () => (await queue.getFailedCount()) === 4, { timeout: 30_000 })
    const seen = [
      await errors.next(),
      await errors.next(),
      await errors.next(),
      await errors.next(),
    ]
    expect(seen.filter((error) => String(error).includes('too large'))).toHaveLength(3)
  })

  it('leaves a job alone that somebody has retried in BullMQ meanwhile', async () => {
    const kept = inbox<ForeignLetter>()
    const failed = await fails({ amount: 1 })
    const tap = await started(async (foreign) => {
      await (await queue.getJob(failed.id!))!.retry()
      kept.put(foreign)
    })
    await kept.next()
    await tap.stop()
    expect(await queue.getWaitingCount()).toBe(1)
  })

  it('keeps data and ids that are hostile', async () => {
    await using letters = await openLetters()
    const { dlq, keep, next } = letters
    const tap = await started(keep)
    const data = JSON.parse('{"__proto__":{"x":1},"constructor":0,"s":"\\ud800\\u0000"}') as object
    await fails(data, { jobId: 'redrive-x %00:é:🚀', deduplication: { id: 'same' }, delay: 1 })
    const { letter } = await next('captured')
    await emptied()
    dlq.handle('orders', returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    await next('resolved')
    const [job] = await queue.getWaiting()
    expect(JSON.stringify(job!.data)).toBe(JSON.stringify(data))
    expect(job!.opts).not.toHaveProperty('deduplication')
  })

  it('rejects returning a letter whose origin or payload was edited away', async () => {
    const tap = await started(async () => {})
    const letter = {
      body: Buffer.from('{}'),
      contentType: 'application/json',
      headers: {},
      messageId: '1',
    }
    const origin = { name: 'charge', options: '{}' }
    const rejects = (more: object, message: string) =>
      expect(tap.returnToSource({ ...letter, origin, ...more }, 1)).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining(message),
      })
    await rejects({ origin: {} }, 'the name of job 1 is unknown')
    await rejects({ origin: { ...origin, options: '[' } }, 'not a JSON object')
    await rejects({ body: Buffer.from('{') }, 'the payload of job 1 is not application/json')
  })

  it('rejects an unknown option', () => {
    expect(() => bullmqTap({ queue, keep: async () => {}, every: 1 } as never)).toThrow(
      'unknown key "every" in bullmqTap options',
    )
  })
})
