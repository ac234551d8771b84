import { describe, expect, it } from 'vitest'
import { flushMs } from '../../src/groups/tracker.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { passThrough } from '../../src/stores/pass-through.ts'
import { RedriveError } from '../../src/errors.ts'
import { aQueue } from '../a-queue.ts'

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
    expect(await store.records.kinds()).toEqual(['group-seen'])
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
