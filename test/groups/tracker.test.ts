import { describe, expect, it } from 'vitest'
import { flushMs } from '../../src/groups/tracker.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { passThrough } from '../../src/stores/pass-through.ts'
import { RedriveError } from '../../src/errors.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import { fixed } from '../../src/policy/backoff.ts'
import { aQueue, forbidden } from '../a-queue.ts'

/** Without a stack, so that all have the same fingerprint. */
function refused(): Error {
  const error = new Error('connection refused')
  delete error.stack
  return error
}

/** The group of the refused connection. */
async function capture(dlq: DeadLetterQueue): Promise<string> {
  return (await dlq.enqueue({ type: 'a' }, refused())).fingerprint
}

describe('the group tracker', () => {
  it('writes after some seconds, and makes no store call before', async () => {
    const { dlq, store, clock } = await aQueue()
    await capture(dlq)
    await clock.advance(flushMs - 1)
    expect(await store.records.kinds()).toEqual([])
    await clock.advance(1)
    expect(await store.records.kinds()).toEqual(['group-new', 'group-seen'])
    expect(clock.pending()).toBe(0)
  })

  it('writes the rest when the queue stops', async () => {
    const { dlq, store } = await aQueue()
    const fingerprint = await capture(dlq)
    await dlq.stop()
    expect(await store.records.list('group-seen')).toMatchObject([{ id: fingerprint }])
  })

  it('counts an occurrence of a stored letter as a failure of its group', async () => {
    const { dlq } = await aQueue()
    const context = { dedupeKey: 'k' }
    const { fingerprint } = await dlq.enqueue({ type: 'a' }, refused(), context)
    await dlq.enqueue({ type: 'a' }, refused(), context)
    const group = (await dlq.group(fingerprint))!
    expect([group.count, group.trend.hours.at(-1)!.count]).toEqual([1, 2])
  })

  it('keeps what it cannot write, and writes it later', async () => {
    let isDown = true
    const { dlq, store, clock, eventsOf } = await aQueue({}, (time) => {
      const inner = memoryStore({ clock: time })
      const put: Store['records']['put'] = (...record) =>
        isDown
          ? Promise.reject(new RedriveError('STORE_UNAVAILABLE', 'down'))
          : inner.records.put(...record)
      const records: Store['records'] = {
        put,
        get: (...which) => inner.records.get(...which),
        list: (...which) => inner.records.list(...which),
        remove: (...which) => inner.records.remove(...which),
        kinds: () => inner.records.kinds(),
      }
      return passThrough(inner, { records })
    })
    const fingerprint = await capture(dlq)
    await clock.advance(flushMs)
    expect(eventsOf('error')).toMatchObject([{ during: 'tracking groups' }])
    await capture(dlq)
    expect((await dlq.group(fingerprint))!.trend.hours.at(-1)!.count).toBe(2)
    isDown = false
    await clock.advance(60_000)
    expect(await store.records.list('group-seen')).toHaveLength(1)
    expect((await dlq.group(fingerprint))!.trend.hours.at(-1)!.count).toBe(2)
  })

  it('makes a resolved group regress by version, and reports it once', async () => {
    const { dlq, store, clock, eventsOf } = await aQueue({ app: { version: '1.9.0' } })
    const fingerprint = await capture(dlq)
    await clock.advance(1000)
    await dlq.resolveGroup(fingerprint, 'ada', { inVersion: '2.0.0' })
    await clock.advance(1000)
    await capture(dlq)
    await clock.advance(2 * flushMs)
    expect(await dlq.group(fingerprint)).toMatchObject({ status: 'resolved' })
    const next = await DeadLetterQueue.open(store, { clock, app: { version: '2.0.1' } })
    const events: unknown[] = []
    next.on('group', (event) => events.push(event))
    await capture(next)
    await capture(next)
    await clock.advance(2 * flushMs)
    await capture(next)
    await clock.advance(2 * flushMs)
    expect(await dlq.group(fingerprint)).toMatchObject({
      status: 'regressed',
      resolved: { by: 'ada', inVersion: '2.0.0' },
    })
    expect(events).toMatchObject([
      { fingerprint, change: 'regress', from: 'resolved', to: 'regressed', by: 'letters' },
    ])
    expect(eventsOf('group').map(({ change }) => change)).toEqual(['resolve'])
  })

  it('records a failed retry in the group of its new failure, without a store call', async () => {
    const { dlq, store, clock } = await aQueue({
      app: { host: 'web-2', version: '2.0.0' },
      backoff: fixed(1000),
    })
    const captured = await DeadLetterQueue.open(store, { clock, backoff: fixed(1000) })
    const { id, fingerprint: first } = await captured.enqueue({ type: 'a' }, refused())
    dlq.handle('a', () => Promise.reject(forbidden()))
    dlq.start()
    await clock.advance(1000)
    const failedAt = toTimestamp(clock.now())
    expect(await store.records.list('group-seen')).toEqual([])
    const { fingerprint } = (await dlq.get(id))!
    expect(fingerprint).not.toBe(first)
    expect(await dlq.group(fingerprint)).toMatchObject({
      title: 'Error: Forbidden',
      count: 1,
      growth: 1,
      firstSeen: failedAt,
      lastSeen: failedAt,
      hosts: [{ name: 'web-2', count: 1 }],
      versions: [{ name: '2.0.0', count: 1 }],
    })
    await clock.advance(flushMs)
    expect(await store.records.get('group-seen', fingerprint)).toBeDefined()
    await dlq.close()
  })

  it('makes a resolved group regress when a retry fails with its failure', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      app: { version: '2.0.0' },
      backoff: fixed(1000),
    })
    const error = forbidden()
    const known = await dlq.enqueue({ type: 'a' }, error)
    await dlq.resolveGroup(known.fingerprint, 'ada', { inVersion: '2.0.0' })
    await dlq.enqueue({ type: 'a' }, refused())
    dlq.handle('a', () => Promise.reject(error))
    dlq.start()
    await clock.advance(1000 + 2 * flushMs)
    expect(await dlq.group(known.fingerprint)).toMatchObject({ status: 'regressed', count: 2 })
    const changes = eventsOf('group').map(({ change, note }) => [change, note])
    expect(changes.at(-1)).toEqual(['regress', 'in version 2.0.0'])
    await dlq.close()
  })

  it('records a failure that fail() reports', async () => {
    const { dlq, clock } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(1000)
    const { fingerprint } = await dlq.fail(id, forbidden())
    const lastSeen = toTimestamp(clock.now())
    expect(await dlq.group(fingerprint)).toMatchObject({ count: 1, growth: 1, lastSeen })
  })

  it('opens an ignored group when its limit is passed', async () => {
    const { dlq, clock } = await aQueue()
    const fingerprint = await capture(dlq)
    const statusAfter = async (captures: number): Promise<string> => {
      for (let n = 0; n < captures; n++) await capture(dlq)
      await clock.advance(2 * flushMs)
      return (await dlq.group(fingerprint))!.status
    }
    await clock.advance(2 * flushMs)
    await dlq.ignoreGroup(fingerprint, 'ada', { count: 3 })
    await clock.advance(1)
    expect([await statusAfter(2), await statusAfter(1)]).toEqual(['ignored', 'open'])
    await clock.advance(3_600_000)
    await dlq.ignoreGroup(fingerprint, 'ada', { rate: 3 })
    await clock.advance(1)
    expect([await statusAfter(2), await statusAfter(1)]).toEqual(['ignored', 'open'])
    await dlq.ignoreGroup(fingerprint, 'ada', { until: new Date(clock.now() + 60_000) })
    expect(await statusAfter(1)).toBe('ignored')
    await clock.advance(60_000)
    expect(await statusAfter(0)).toBe('open')
  })

  it('applies the life cycle of a merged group to the letters of all its fingerprints', async () => {
    const { dlq, clock } = await aQueue()
    const fingerprint = await capture(dlq)
    const other = await dlq.enqueue({ type: 'b' }, refused())
    await dlq.mergeGroups(fingerprint, [other.fingerprint], 'ada')
    await dlq.resolveGroup(fingerprint, 'ada')
    await clock.advance(1000)
    await dlq.enqueue({ type: 'b' }, refused())
    await clock.advance(2 * flushMs)
    expect(await dlq.group(other.fingerprint)).toMatchObject({ fingerprint, status: 'regressed' })
  })
})
