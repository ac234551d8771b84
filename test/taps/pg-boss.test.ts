import { PgBoss, type JobWithMetadata, type SendOptions } from 'pg-boss'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { pgBossTap } from '../../src/taps/pg-boss.ts'
import { returnToSource } from '../../src/taps/return-to-source.ts'
import type { ForeignLetter, Keep, Tap } from '../../src/taps/tap.ts'
import { postgresPlace, type Place } from '../servers/places.ts'
import { backend, freshName } from '../servers/servers.ts'
import { inbox } from './inbox.ts'
import { openLetters } from './letters.ts'

const { url, missing } = backend('postgres')

describe.skipIf(missing)('pgBossTap', () => {
  let place: Place
  let boss: PgBoss
  let queue: string
  let dead: string
  const taps: Tap[] = []

  beforeAll(async () => {
    place = postgresPlace(url)
    boss = new PgBoss({ connectionString: url, schema: place.name, schedule: false })
    boss.on('error', () => {})
    await boss.start()
  })

  afterAll(async () => {
    await boss.stop({ graceful: false })
    await place.clear()
  })

  beforeEach(async () => {
    queue = freshName()
    dead = `${queue}-dead`
    await boss.createQueue(dead)
    await boss.createQueue(queue, { deadLetter: dead, retryLimit: 0 })
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
  })

  const started = async (
    keep: Keep,
    from = dead,
    onError?: (error: unknown) => void,
  ): Promise<Tap> => {
    const tap = pgBossTap({ boss, queue: from, keep, pollMs: 20, ...(onError ? { onError } : {}) })
    taps.push(tap)
    await tap.start()
    return tap
  }

  /** Runs the next job of a queue in a real worker, which fails or succeeds. */
  const runNext = async (name: string, fail: boolean): Promise<JobWithMetadata<unknown>> => {
    const ran = inbox<JobWithMetadata<unknown>>()
    const options = { includeMetadata: true, pollingIntervalSeconds: 0.5 } as const
    await boss.work<unknown>(name, options, async ([job]) => {
      ran.put(job as JobWithMetadata<unknown>)
      if (fail) throw new TypeError('the card was declined')
    })
    const job = await ran.next()
    // Waits until the worker has recorded the result.
    await boss.offWork(name, { wait: true })
    return job
  }

  const fails = async (
    data: object | null,
    options: SendOptions = {},
    name = queue,
  ): Promise<string> => {
    const id = await boss.send(name, data, options)
    await runNext(name, true)
    return id!
  }

  /** Waits until the queue has this number of jobs. */
  const hasJobs = async (name: string, count: number): Promise<void> => {
    await vi.waitUntil(async () => (await boss.findJobs(name)).length === count, {
      timeout: 30_000,
    })
  }

  it('stores a job of a dead letter queue with all that matters, then removes it', async () => {
    const kept = inbox<ForeignLetter>()
    await started(async (foreign) => kept.put(foreign))
    const options = { priority: 3, expireInSeconds: 77, group: { id: 'g', tier: 't' } }
    const id = await fails({ amount: 42 }, options)
    const foreign = await kept.next()
    expect(JSON.parse(Buffer.from(foreign.body).toString())).toEqual({ amount: 42 })
    expect(foreign).toMatchObject({
      source: queue,
      reason: 'the card was declined',
      error: {
        name: 'TypeError',
        message: 'the card was declined',
        stack: expect.stringContaining('pg-boss.test'),
      },
      deliveries: 1,
      enqueuedAt: expect.any(String),
      failedAt: expect.any(String),
      headers: {},
      messageId: id,
      origin: { queue, deadLetterQueue: dead },
    })
    expect(JSON.parse(foreign.origin['options']!)).toMatchObject({
      ...options,
      retryLimit: 0,
      deadLetter: dead,
    })
    await hasJobs(dead, 0)
  })

  it('returns a job to its queue, where it succeeds with the same data and options', async () => {
    await using letters = await openLetters()
    const { dlq, keep, next } = letters
    const tap = await started(keep)
    const id = await fails({ amount: 42, note: 'ü' }, { retryLimit: 0, expireInSeconds: 77 })
    const { letter } = await next('captured')
    expect(letter).toMatchObject({
      queue,
      state: 'parked',
      failure: { name: 'TypeError', message: 'the card was declined' },
      source: { kind: 'mailbox', mailbox: queue, messageId: id },
    })
    dlq.handle(queue, returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    await next('resolved')
    const job = await runNext(queue, false)
    expect(job).toMatchObject({
      data: { amount: 42, note: 'ü' },
      retryCount: 0,
      retryLimit: 0,
      expireInSeconds: 77,
    })
    const [ended] = await boss.findJobs(queue, { id: job.id })
    expect(ended!.state).toBe('completed')
  })

  it('stores failed jobs of a queue without a dead letter queue, and no others', async () => {
    const plain = `${queue}-plain`
    await boss.createQueue(plain, { retryLimit: 0 })
    await boss.send(plain, { n: 'done' })
    await runNext(plain, false)
    const id = await fails({ n: 'failed' }, { singletonKey: 'k', priority: 5 }, plain)
    await boss.send(plain, { n: 'waiting' }, { startAfter: 3600 })
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign), plain)
    const foreign = await kept.next()
    expect(foreign).toMatchObject({ source: plain, messageId: id, deliveries: 1 })
    await hasJobs(plain, 2)
    const left = await boss.findJobs(plain)
    expect(left.map(({ state }) => state).toSorted()).toEqual(['completed', 'created'])
    await tap.returnToSource(foreign, 1)
    const [back] = await boss.findJobs(plain, { key: 'k' })
    expect(back).toMatchObject({ data: { n: 'failed' }, priority: 5, state: 'created' })
  })

  it('stores a job once after a crash between storing and removing it', async () => {
    await using letters = await openLetters()
    const { dlq, keep, keepAndCrash, next } = letters
    const crashing = await started(keepAndCrash)
    await fails({ amount: 1 })
    const { letter } = await next('captured')
    await crashing.stop()
    expect(await boss.findJobs(dead)).toHaveLength(1)
    await started(keep)
    expect(await next('duplicate')).toMatchObject({ letter: { id: letter.id } })
    await hasJobs(dead, 0)
    expect((await dlq.find()).items).toHaveLength(1)
  })

  it('adds no second job when a return is repeated, but another one after an edit', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await fails({ amount: 1 })
    const foreign = await kept.next()
    await tap.returnToSource(foreign, 1)
    await tap.returnToSource(foreign, 1)
    expect(await boss.findJobs(queue, { queued: true })).toHaveLength(1)
    await tap.returnToSource({ ...foreign, body: Buffer.from('{"amount":2}') }, 1)
    expect(await boss.findJobs(queue, { queued: true })).toHaveLength(2)
  })

  it('counts the returns of a job over all its lives, without changing its data', async () => {
    await using letters = await openLetters()
    const { dlq, keep, next } = letters
    const tap = await started(keep)
    dlq.handle(queue, returnToSource(tap))
    dlq.start()
    await fails({ amount: 1 })
    for (const replays of [0, 1]) {
      const { letter } = await next('captured')
      expect(letter.replays).toBe(replays)
      expect(Buffer.from((await dlq.get(letter.id))!.payload.bytes).toString()).toBe('{"amount":1}')
      await dlq.retry(letter.id)
      await next('resolved')
      await runNext(queue, true)
    }
    expect((await next('captured')).letter.replays).toBe(2)
  })

  it('refuses to return a job while the policy of the queue allows no further one', async () => {
    const single = `${queue}-single`
    await boss.createQueue(single, { policy: 'short', retryLimit: 0 })
    await fails({ n: 1 }, {}, single)
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign), single)
    const foreign = await kept.next()
    await boss.send(single, { n: 2 })
    await expect(tap.returnToSource(foreign, 1)).rejects.toMatchObject({
      code: 'MAILBOX_FULL',
      message: expect.stringContaining(`the queue ${single}: its policy allows no further job now`),
    })
  })

  it('reads past jobs that cannot be stored', async () => {
    const kept = inbox<string>()
    const errors = inbox<unknown>()
    for (const n of ['bad', 'bad', 'good']) await fails({ n })
    await started(
      async ({ body }) => {
        const { n } = JSON.parse(Buffer.from(body).toString()) as { n: string }
        if (n === 'bad') throw new Error('too large')
        kept.put(n)
      },
      dead,
      (error) => errors.put(error),
    )
    expect(await kept.next()).toBe('good')
    expect(String(await errors.next())).toContain('too large')
    await hasJobs(dead, 2)
  })

  it('keeps hostile data, and output that is not an error', async () => {
    await using letters = await openLetters()
    const { dlq, keep, next } = letters
    const tap = await started(keep)
    const data = JSON.parse('{"__proto__":{"x":1},"constructor":0,"s":"🚀\\"\\\\"}') as object
    await boss.send(queue, data)
    const [job] = await boss.fetch(queue)
    await boss.fail(queue, job!.id, { message: 7, stack: {}, value: 'just a string' })
    const { letter } = await next('captured')
    expect(letter.failure).toMatchObject({ name: 'Error', message: 'just a string' })
    dlq.handle(queue, returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    await next('resolved')
    const [back] = await boss.findJobs(queue, { queued: true })
    expect(JSON.parse(JSON.stringify(back!.data))).toEqual(JSON.parse(JSON.stringify(data)))
  })

  it('keeps a letter whose queue is gone', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await fails({ amount: 1 })
    const foreign = await kept.next()
    const origin = { ...foreign.origin, queue: `${queue}-gone` }
    await expect(tap.returnToSource({ ...foreign, origin }, 1)).rejects.toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
      message: expect.stringContaining(`could not return the letter to the queue ${queue}-gone`),
    })
  })

  it('rejects start if the queue does not exist, and an unknown option', async () => {
    const tap = pgBossTap({ boss, queue: 'nowhere', keep: async () => {} })
    await expect(tap.start()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await tap.stop()
    expect(() => pgBossTap({ boss, queue, keep: async () => {}, every: 1 } as never)).toThrow(
      'unknown key "every" in pgBossTap options',
    )
  })
})
