import { describe, expect, it } from 'vitest'
import { confirmReplays } from '../../src/admin/replay-confirmation.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { redisMailbox } from '../../src/mailboxes/redis/redis.ts'
import { ObserverHub, type RedriveEvent } from '../../src/observer.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'
import { testMailbox } from '../../src/testing/test-mailbox.ts'
import { aQueue, forbidden } from '../a-queue.ts'
import { planAndFinish, resultsOf } from '../bulk/steps.ts'
import { eachStore } from '../each-store.ts'
import { redisPlace } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'
import { deadLetterOne } from '../loops/dead-letter-one.ts'

const windowMs = 60_000
const options = { confirmReplayMs: windowMs } as const
const kind = 'replay-confirmation'

/** Runs the chore of the sweep, and returns the events that it emits. */
async function sweep(store: Store, clock: FakeClock): Promise<RedriveEvent[]> {
  const hub = new ObserverHub()
  const events: RedriveEvent[] = []
  hub.on('*', (event) => events.push(event))
  await confirmReplays({ store, clock, hub })
  return events
}

interface Bench {
  dlq: DeadLetterQueue
  store: Store
  clock: FakeClock
  requests: ReturnType<typeof memoryMailbox>
}

describe.each(eachStore)('the confirmation of a replay on a %s store', (_name, open) => {
  /** Calls `use` with a queue whose replays are confirmed, and the mailbox of its letters. */
  async function withBench(use: (bench: Bench) => Promise<void>): Promise<void> {
    const clock = fakeClock()
    const { store, close } = await open(clock)
    const requests = memoryMailbox({ name: 'requests' })
    const dlq = await DeadLetterQueue.open(store, { clock, ...options })
    try {
      await use({ dlq, store, clock, requests })
    } finally {
      await dlq.close()
      await requests.close()
      await close()
    }
  }

  async function replayOne({ dlq, requests }: Bench): Promise<DeadLetter> {
    await requests.send({ order: 1 }, { id: 'm-1' })
    const { id } = await deadLetterOne(dlq, requests)
    return dlq.replay(id, 'mia')
  }

  it('resolves the letter once the window has passed, not before', () =>
    withBench(async (bench) => {
      const { dlq, store, clock } = bench
      const waiting = await replayOne(bench)
      const confirmAt = new Date(clock.now() + windowMs).toISOString()
      expect(waiting).toMatchObject({
        state: 'parked',
        reason: 'replayed',
        retryAt: confirmAt,
        replays: 1,
      })
      expect(waiting.review).toBeUndefined()
      expect(await dlq.get(waiting.id)).toEqual(waiting)
      clock.set(clock.now() + windowMs - 1)
      expect(await sweep(store, clock)).toEqual([])
      expect(await dlq.get(waiting.id)).toEqual(waiting)
      clock.set(clock.now() + 1)
      const events = await sweep(store, clock)
      expect(events.map(({ type }) => type)).toEqual(['resolved', 'changed'])
      const resolved = (await dlq.get(waiting.id))!
      expect(resolved).toMatchObject({ state: 'resolved', replays: 1 })
      expect(resolved.retryAt).toBeUndefined()
      expect(resolved.history.at(-1)).toMatchObject({
        action: 'resolve',
        actor: 'sweep',
        note: 'the replay is confirmed: no newer letter',
      })
      expect(await store.records.list(kind)).toEqual([])
      expect((await dlq.stats()).lifetime).toMatchObject({ replayed: 1, resolved: 1, parked: 0 })
    }))

  it('names the newer letter if the message died again', () =>
    withBench(async (bench) => {
      const { dlq, store, clock, requests } = bench
      const first = await replayOne(bench)
      const second = await deadLetterOne(dlq, requests)
      clock.set(clock.now() + windowMs)
      await sweep(store, clock)
      const resolved = (await dlq.get(first.id))!
      expect(resolved.state).toBe('resolved')
      expect(resolved.history.at(-1)!.note).toBe(
        `the replayed message died again: see letter ${second.id}`,
      )
      expect(await dlq.lineage(first.id)).toMatchObject([
        { id: first.id, state: 'resolved' },
        { id: second.id, replays: 1 },
      ])
    }))

  it('leaves a letter alone that somebody has resolved, retried or replayed', () =>
    withBench(async (bench) => {
      const { dlq, store, clock } = bench
      const { id } = await replayOne(bench)
      const retried = await dlq.retry(id, 'ada')
      expect(retried).toMatchObject({ state: 'pending', retryAt: retried.updatedAt })
      clock.set(clock.now() + windowMs)
      expect(await sweep(store, clock)).toEqual([])
      expect(await dlq.get(id)).toEqual(retried)
      await dlq.replay(id, 'ada')
      clock.set(clock.now() + windowMs / 2)
      const again = await dlq.replay(id, 'ada')
      clock.set(clock.now() + windowMs / 2)
      expect(await sweep(store, clock)).toEqual([])
      expect(await dlq.get(id)).toEqual(again)
      const resolved = await dlq.resolve(id, 'ada')
      clock.set(clock.now() + windowMs)
      expect(await sweep(store, clock)).toEqual([])
      expect(await dlq.get(id)).toEqual(resolved)
      expect(await store.records.list(kind)).toEqual([])
    }))

  it('resolves a letter that got a note and a tag while it waited', () =>
    withBench(async (bench) => {
      const { dlq, store, clock } = bench
      const { id } = await replayOne(bench)
      await dlq.note(id, 'asked the bank', 'ada')
      await dlq.edit(id, { tags: ['bank'], reason: 'sorting', by: 'ada' })
      clock.set(clock.now() + windowMs)
      await sweep(store, clock)
      expect(await dlq.get(id)).toMatchObject({ state: 'resolved', tags: ['bank'] })
    }))

  it('asks for a review if the same failure was captured again', () =>
    withBench(async ({ dlq, store, clock, requests }) => {
      const fail = (): Promise<{ id: string }> =>
        dlq.enqueue({ type: 'charge', payload: 1 }, forbidden(), { dedupeKey: 'order-1' })
      const { id } = await fail()
      await dlq.replay(id, 'mia', { to: requests })
      expect((await fail()).id).toBe(id)
      clock.set(clock.now() + windowMs)
      const events = await sweep(store, clock)
      expect(events.map(({ type }) => type)).toEqual(['parked', 'changed'])
      const undecided = (await dlq.get(id))!
      expect(undecided).toMatchObject({ state: 'parked', reason: 'replayed', occurrences: 2 })
      expect(undecided.review).toEqual({ neededSince: undecided.updatedAt })
      expect(undecided.retryAt).toBeUndefined()
      expect((await dlq.stats()).lifetime).toMatchObject({ replayed: 1, resolved: 0 })
    }))

  it('asks for a review when a waiting letter was archived and is restored', () =>
    withBench(async (bench) => {
      const { dlq, store, clock } = bench
      const { id } = await replayOne(bench)
      await dlq.archive(id, 'ada')
      clock.set(clock.now() + windowMs)
      expect(await sweep(store, clock)).toEqual([])
      const restored = await dlq.restore(id, 'ada')
      expect(restored).toMatchObject({
        state: 'parked',
        review: { neededSince: restored.updatedAt },
      })
      expect(await dlq.get(id)).toEqual(restored)
    }))

  it('finds a record of a pipeline that died again by its stream', () =>
    withBench(async ({ dlq, store, clock, requests }) => {
      const source = {
        kind: 'pipeline',
        cluster: 'c',
        node: 'parser',
        topic: 't',
        partition: 0,
        offset: '1',
        streamId: 's-1',
        hops: 0,
      } as const
      const at = (ms: number): string => new Date(clock.now() + ms).toISOString()
      const first = aLetter({ state: 'parked', source, deadLetteredAt: at(0) })
      const other = aLetter({ source: { ...source, node: 'loader' }, deadLetteredAt: at(1) })
      const second = aLetter({ source, replays: 1, deadLetteredAt: at(2) })
      await store.add([first, other, second])
      await dlq.replay(first.id, 'mia', { to: requests })
      const [record] = await store.records.list(kind)
      // The route of a pipeline knows no id of the message.
      await store.records.put(kind, record!.id, [[first.id, null]])
      clock.set(clock.now() + windowMs)
      await sweep(store, clock)
      expect((await dlq.get(first.id))!.history.at(-1)!.note).toContain(second.id)
    }))
})

/** A queue with letters of a mailbox, whose replays are confirmed. */
async function aReplay(count: number, store?: Parameters<typeof aQueue>[1]) {
  const mailbox = testMailbox({ name: 'requests' })
  const bench = await aQueue({ mailboxes: { requests: mailbox }, ...options }, store)
  const letters = Array.from({ length: count }, (_, index) =>
    aLetter({
      queue: 'requests',
      state: 'parked',
      source: { kind: 'mailbox', mailbox: 'requests', messageId: `m${index}`, deliveries: 3 },
    }),
  )
  await bench.store.add(letters)
  return { ...bench, mailbox, letters }
}

describe('the confirmation of a bulk replay', () => {
  it('follows after the results, and a second action skips the letters', async () => {
    const bench = await aReplay(1200)
    const { dlq, store, clock, eventsOf } = bench
    const filter = { queue: 'requests' }
    const done = await planAndFinish(bench, 'replay', filter)
    expect(done).toMatchObject({ state: 'finished', progress: { succeeded: 1200 } })
    expect((await resultsOf(bench, done)).every(({ outcome }) => outcome === 'succeeded')).toBe(
      true,
    )
    expect((await dlq.stats()).states).toMatchObject({ parked: 1200, resolved: 0 })
    for (const action of ['replay', 'retry'] as const)
      await expect(dlq.plan(action, filter)).rejects.toThrow(
        'it was replayed, and waits for confirmation until 2026-01-01T',
      )
    await clock.advance(windowMs + 60_000)
    expect((await dlq.stats()).states).toMatchObject({ parked: 0, resolved: 1200 })
    expect(await store.records.list(kind)).toEqual([])
    expect(eventsOf('resolved')).toHaveLength(1200)
    expect(eventsOf('error')).toEqual([])
    await dlq.close()
  })

  it('applies to the queues that ask for it', async () => {
    const mailbox = testMailbox({ name: 'requests' })
    const queues = { careful: { confirmReplayMs: 1000 } }
    const bench = await aQueue({ mailboxes: { requests: mailbox }, queues })
    const source = { kind: 'mailbox', mailbox: 'requests', messageId: 'm', deliveries: 1 } as const
    const letters = ['careful', 'fast'].map((queue) => aLetter({ queue, state: 'parked', source }))
    await bench.store.add(letters)
    await planAndFinish(bench, 'replay', { state: 'parked' })
    const states = (await bench.store.get(letters.map(({ id }) => id))).map(({ state }) => state)
    expect(states).toEqual(['parked', 'resolved'])
    await bench.dlq.close()
  })
})

/** A memory store whose n-th write fails: before it is done, or after. */
function failingStore(clock: FakeClock): Store & { failAt: number; failAfter: boolean } {
  const store = memoryStore({ clock })
  const failing = Object.assign(store, { failAt: Infinity, failAfter: false })
  let writes = 0
  const wrap = <A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
    async function failOnce(...args: A): Promise<R> {
      writes += 1
      const isCrash = writes === failing.failAt
      if (isCrash && !failing.failAfter) throw new Error('crashed')
      const result = await write(...args)
      if (isCrash) throw new Error('crashed')
      return result
    }
  store.apply = wrap(store.apply.bind(store))
  store.records.put = wrap(store.records.put.bind(store.records))
  store.records.remove = wrap(store.records.remove.bind(store.records))
  return failing
}

describe('a crash', () => {
  // The writes: the record, the change to waiting, the change to resolved, the end of the record.
  for (const failAfter of [false, true])
    for (const failAt of [1, 2, 3, 4])
      it(`${failAfter ? 'after' : 'before'} write ${failAt} loses no letter and no confirmation`, async () => {
        const bench = await aReplay(1, failingStore)
        const { dlq, store, clock, letters, mailbox } = bench
        Object.assign(store, { failAt, failAfter })
        const { id } = letters[0]!
        const isRecorded = await dlq.replay(id, 'mia').then(
          () => true,
          () => false,
        )
        expect(isRecorded).toBe(failAt > 2)
        const now = (await dlq.get(id))!
        // Not recorded: as before a replay, so that a person replays the letter again.
        const waits = failAt > 2 || (failAt === 2 && failAfter)
        expect(now.reason).toBe(waits ? 'replayed' : letters[0]!.reason)
        if (!waits) await dlq.replay(id, 'mia')
        expect(mailbox.sent).toHaveLength(waits ? 1 : 2)
        clock.set(clock.now() + windowMs)
        await sweep(store, clock).catch(() => [])
        await sweep(store, clock)
        expect(await dlq.get(id)).toMatchObject({ state: 'resolved', replays: 1 })
        expect(await store.records.list(kind)).toEqual([])
        expect((await dlq.stats()).lifetime).toMatchObject({ replayed: 1, resolved: 1 })
        await dlq.close()
      })
})

const redis = backend('redis')

it.skipIf(redis.missing)('a message that dies again on Redis is found by its id', async () => {
  const place = redisPlace(redis.url)
  const requests = redisMailbox({ url: redis.url, prefix: place.name, name: 'requests' })
  await requests.open()
  try {
    const { dlq, store, clock } = await aQueue(options)
    await requests.send({ order: 1 })
    const first = await deadLetterOne(dlq, requests)
    await dlq.replay(first.id, 'mia')
    const second = await deadLetterOne(dlq, requests)
    clock.set(clock.now() + windowMs)
    await sweep(store, clock)
    expect((await dlq.get(first.id))!.history.at(-1)!.note).toContain(second.id)
    expect((await dlq.lineage(second.id)).map(({ id }) => id)).toEqual([first.id, second.id])
    await dlq.close()
  } finally {
    await requests.close()
    await place.clear()
  }
})
