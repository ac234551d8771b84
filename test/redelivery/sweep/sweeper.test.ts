import { describe, expect, it } from 'vitest'
import { nextTurn, type Clock } from '../../../src/clock/clock.ts'
import type { LetterQuery } from '../../../src/letter/query.ts'
import { fixed, immediate } from '../../../src/policy/backoff.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import type { FakeClock } from '../../../src/testing/fake-clock.ts'
import { aQueue, deferred, forbidden, refused, timedOut } from '../../a-queue.ts'

describe('Sweeper', () => {
  it('archives letters past their retention, and removes archived ones later', async () => {
    const { dlq, clock } = await aQueue({
      queues: { short: { retention: { archiveAfterMs: 60_000, removeAfterMs: 120_000 } } },
    })
    const gone = await dlq.enqueue({ type: 'short' }, refused())
    const kept = await dlq.enqueue({ type: 'long' }, refused())
    await dlq.resolve(gone.id)
    await dlq.resolve(kept.id)
    dlq.start()
    await clock.advance(70_000)
    expect((await dlq.get(gone.id))!.state).toBe('archived')
    expect((await dlq.get(kept.id))!.state).toBe('resolved')
    await clock.advance(130_000)
    expect(await dlq.get(gone.id)).toBeUndefined()
    expect(await dlq.get(kept.id)).toBeDefined()
    await dlq.close()
  })

  it('sweeps again soon after reaching its limit, so that letters cannot pile up', async () => {
    const { dlq, clock } = await aQueue({
      sweepMs: 3_600_000,
      backoff: immediate(),
      retention: { archiveAfterMs: 0 },
    })
    const failures = Array.from({ length: 1700 }, () => ({
      operation: { type: 'a' },
      error: refused(),
    }))
    for (const id of await dlq.enqueueAll(failures)) await dlq.resolve(id)
    await clock.advance(1)
    dlq.start()
    await clock.advance(10_000)
    expect((await dlq.stats()).states).toMatchObject({ resolved: 0, archived: 1700 })
    await dlq.close()
  })

  it('parks letters that expired before they could run', async () => {
    const { dlq, clock } = await aQueue()
    dlq.handle('a', () => {})
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), {
      expiresAt: toTimestamp(clock.now() + 10_000),
    })
    dlq.start()
    await clock.advance(20_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'expired' })
    await dlq.close()
  })

  it('parks letters without a handler, uncounted, and resumes them when a handler registers', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate() })
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'mystery' }, refused())
    await clock.advance(10_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'no-handler', retries: 0 })
    dlq.handle('mystery', () => {})
    await clock.advance(10_000)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })

  it('stays in the registry when it is started again during a stop', async () => {
    const listed = deferred()
    const listing = deferred()
    const { dlq, clock, store } = await aQueue()
    const list = store.records.list.bind(store.records)
    store.records.list = async (...args) => {
      listing.resolve()
      await listed.promise
      return list(...args)
    }
    dlq.handle('a', () => {})
    dlq.start()
    await listing.promise
    const stopped = dlq.stop()
    dlq.start()
    listed.resolve()
    await stopped
    expect(await store.records.get('worker', 'worker-1')).toBeDefined()
    await clock.advance(10_000)
    await dlq.stop()
    expect(await store.records.get('worker', 'worker-1')).toBeUndefined()
    await dlq.close()
  })

  it('leaves the registry before the store is closed, even if a stop is in progress', async () => {
    const { dlq, clock, store } = await aQueue()
    const order: string[] = []
    const remove = store.records.remove.bind(store.records)
    const close = store.close.bind(store)
    store.records.remove = async (...args) => {
      await nextTurn()
      order.push('left')
      return remove(...args)
    }
    store.close = async () => {
      order.push('closed')
      await close()
    }
    dlq.start()
    await clock.advance(0)
    void dlq.stop()
    await dlq.close()
    expect(order).toEqual(['left', 'closed'])
  })

  it('does not park letters that another live worker can run', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: immediate() })
    await store.records.put('worker', 'other', {
      queues: ['theirs'],
      seenAt: toTimestamp(clock.now() + 30_000),
    })
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'theirs' }, refused())
    await clock.advance(20_000)
    expect((await dlq.get(id))!.state).toBe('pending')
    await clock.advance(200_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'no-handler' })
    await dlq.close()
  })

  it('does not park letters that a live worker can run, even if its own clock is wrong', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: fixed(60_000), maxRetries: 3 })
    const other = await DeadLetterQueue.open(store, { clock: ahead(clock, 180_000), worker: 'b' })
    let runs = 0
    dlq.handle('a', () => {
      runs++
      throw timedOut()
    })
    other.handle('else', () => {})
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    other.start()
    await clock.advance(600_000)
    const letter = (await dlq.get(id))!
    expect(letter.history.map(({ action }) => action)).not.toContain('park')
    expect({ runs, state: letter.state }).toEqual({ runs: 3, state: 'exhausted' })
    await Promise.all([dlq.stop(), other.stop()])
  })

  it('does not park letters of a worker that sweeps far less often', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: fixed(300_000), sweepMs: 600_000 })
    const other = await DeadLetterQueue.open(store, { clock, worker: 'b' })
    dlq.handle('a', () => new Promise(() => {}))
    other.handle('else', () => {})
    dlq.start()
    other.start()
    const waits = { maxRetries: 1, lane: 'one' }
    await dlq.enqueue({ type: 'a' }, refused(), waits)
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), waits)
    await clock.advance(310_000)
    expect((await dlq.get(id))!.state).toBe('pending')
    const stopped = Promise.all([dlq.stop(), other.stop()])
    await clock.advance(60_000)
    await stopped
  })

  it('removes the edits of removed letters only', async () => {
    const { dlq, clock, store } = await aQueue()
    const kept: string[] = []
    for (let n = 0; n < 130; n++) {
      const queue = n % 2 ? 'gone' : 'kept'
      const { id } = await dlq.enqueue({ type: queue }, refused())
      await dlq.edit(id, { tags: ['edited'], reason: 'r', by: 'mia' })
      if (queue === 'kept') kept.push(id)
    }
    await dlq.archive(kept[0]!, 'mia')
    await dlq.clear({ queue: 'gone' }, { confirm: 65 })
    dlq.start()
    await clock.advance(130_000)
    const left = (await store.records.list('edit', { limit: 1000 })).map(({ id }) => id)
    expect(left.map((id) => id.slice(0, -11)).toSorted()).toEqual(kept.toSorted())
    await dlq.stop()
  })

  it('searches for orphaned edits at most once a minute, because they are large', async () => {
    const { dlq, clock, store } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await dlq.edit(id, { payload: 'x'.repeat(1000), reason: 'r', by: 'mia' })
    const list = store.records.list.bind(store.records)
    let queries = 0
    store.records.list = (kind, options) => {
      if (kind === 'edit') queries++
      return list(kind, options)
    }
    dlq.start()
    await clock.advance(600_000)
    expect(queries).toBeGreaterThan(5)
    expect(queries).toBeLessThanOrEqual(11)
    await dlq.close()
  })

  it('wakes a letter with its remaining retries, unlike a retry by a person', async () => {
    const { dlq, clock, store } = await aQueue()
    const policy = { backoff: fixed(20_000), maxRetries: 3 }
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), {
      maxRetries: 3,
      policy: fixed(20_000),
    })
    let runs = 0
    for (let deploy = 0; deploy < 4; deploy++) {
      const worker = await DeadLetterQueue.open(store, { clock, worker: `w${deploy}`, ...policy })
      worker.handle('a', () => {
        runs++
        throw timedOut()
      })
      worker.start()
      await clock.advance(15_000)
      await worker.stop()
      await clock.advance(60_000)
    }
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 3 })
    expect(runs).toBe(3)
    const { lifetime } = await dlq.stats()
    expect(lifetime.parked).toBeGreaterThan(0)
    expect(lifetime.manuallyRetried).toBe(0)
    await dlq.close()
  })

  it('parks letters that depend on an archived or removed one', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    dlq.handle('a', () => {})
    const first = await dlq.enqueue({ type: 'a' }, refused())
    const second = await dlq.enqueue({ type: 'a' }, refused(), { dependsOn: [first.id] })
    await dlq.remove(first.id)
    dlq.start()
    await clock.advance(10)
    expect(await dlq.get(second.id)).toMatchObject({ state: 'parked', reason: 'dependency-failed' })
    await dlq.close()
  })

  it('parks the letters of a dependency cycle, but not letters that depend on them', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: immediate() })
    dlq.handle('a', () => {})
    const [one, two, three, behind] = Array.from({ length: 4 }, () => aLetter({ queue: 'a' }))
    await store.add([
      { ...one!, dependsOn: [two!.id] },
      { ...two!, dependsOn: [three!.id] },
      { ...three!, dependsOn: [one!.id] },
      { ...behind!, dependsOn: [one!.id] },
    ])
    dlq.start()
    await clock.advance(10)
    for (const { id } of [one!, two!, three!])
      expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'dependency-failed' })
    expect(await dlq.get(behind!.id)).toMatchObject({ state: 'pending' })
    await dlq.resolve(two!.id)
    await dlq.retry(one!.id)
    await clock.advance(10)
    expect(await dlq.get(one!.id)).toMatchObject({ state: 'resolved' })
    expect(await dlq.get(behind!.id)).toMatchObject({ state: 'resolved' })
    await dlq.close()
  })

  it('emits an event for every letter that it parks, like a run that parks one', async () => {
    const { dlq, clock, events, eventsOf } = await aQueue({ backoff: fixed(1000) })
    dlq.handle('a', () => {})
    const gone = await dlq.enqueue({ type: 'a' }, forbidden())
    const context = { expiresAt: toTimestamp(clock.now() + 500), policy: fixed(60_000) }
    const payload = { of: 'a person' }
    const late = await dlq.enqueue({ type: 'a', payload }, refused(), context)
    const orphan = await dlq.enqueue({ type: 'a' }, refused(), { dependsOn: [gone.id] })
    const mystery = await dlq.enqueue({ type: 'mystery' }, refused())
    await dlq.remove(gone.id)
    events.length = 0
    await clock.advance(3000)
    dlq.start()
    await clock.advance(1)
    expect(eventsOf('swept')).toMatchObject([{ parked: 3 }])
    const whys = eventsOf('parked').map(({ letter }) => [letter.id, letter.reason])
    expect(Object.fromEntries(whys)).toEqual({
      [late.id]: 'expired',
      [orphan.id]: 'dependency-failed',
      [mystery.id]: 'no-handler',
    })
    for (const { letter } of eventsOf('parked')) expect(letter).toEqual(await dlq.get(letter.id))
    expect(eventsOf('changed').map(({ letter, change }) => [letter.id, change.action])).toEqual(
      whys.map(([id]) => [id, 'park']),
    )
    await dlq.close()
  })

  it('emits no event for a letter that someone else changed first', async () => {
    const { dlq, clock, store, eventsOf } = await aQueue()
    dlq.handle('a', () => {})
    const expiresAt = toTimestamp(clock.now() + 500)
    const ids: string[] = []
    for (let n = 0; n < 120; n++)
      ids.push((await dlq.enqueue({ type: 'a' }, refused(), { expiresAt })).id)
    await clock.advance(1000)
    const apply = store.apply.bind(store)
    let faster = false
    store.apply = async (changes) => {
      if (!faster) {
        faster = true
        await dlq.resolve(ids[7]!)
      }
      return apply(changes)
    }
    dlq.start()
    await clock.advance(1)
    expect(eventsOf('swept')).toMatchObject([{ parked: 119 }])
    const parkedIds = eventsOf('parked').map(({ letter }) => letter.id)
    expect(parkedIds.toSorted()).toEqual(ids.filter((id) => id !== ids[7]).toSorted())
    await dlq.close()
  })

  it('checks all waiting letters, and reads only the payloads of letters that it parks', async () => {
    const { dlq, clock, store } = await aQueue()
    let read = 0
    const get = store.get.bind(store)
    store.get = (ids) => {
      read += ids.length
      return get(ids)
    }
    dlq.handle('a', () => {})
    const [gone, stays] = [aLetter({ state: 'parked' }), aLetter({ state: 'parked' })]
    const waitsFor = (id: string) => aLetter({ queue: 'a', dependsOn: [id] })
    const first = waitsFor(gone.id)
    const others = Array.from({ length: 1200 }, () => waitsFor(stays.id))
    await store.add([gone, stays, first, ...others, waitsFor(gone.id)])
    await dlq.remove(gone.id)
    read = 0
    dlq.start()
    await clock.advance(20_000)
    const [letter] = (await dlq.find({ ids: [first.id] })).items
    expect(letter).toMatchObject({ state: 'parked', reason: 'dependency-failed' })
    expect((await dlq.stats()).states).toMatchObject({ parked: 3, pending: 1200 })
    expect(read).toBe(2)
    // Letters that become orphans later are found in the next round.
    await dlq.remove(stays.id)
    await clock.advance(20_000)
    expect((await dlq.stats()).states).toMatchObject({ parked: 1202, pending: 0 })
    await dlq.close()
  })

  it('limits its queries, regardless of the length of a dependency chain', async () => {
    const { dlq, clock, store } = await aQueue()
    let queries = 0
    const find = store.find.bind(store) as (query?: LetterQuery) => Promise<never>
    store.find = (query?: LetterQuery) => {
      queries += 1
      return find(query)
    }
    dlq.handle('a', () => {})
    let before = aLetter({ queue: 'a', state: 'parked' })
    const row = [before]
    for (let n = 0; n < 3000; n++)
      row.push((before = aLetter({ queue: 'a', dependsOn: [before.id] })))
    await store.add(row)
    dlq.start()
    await clock.advance(10)
    expect(queries).toBeLessThan(200)
    await dlq.close()
  })
})

/** A machine whose wall clock is off. */
function ahead(clock: FakeClock, ms: number): Clock {
  return {
    now: () => clock.now() + ms,
    mono: () => clock.mono(),
    random: () => clock.random(),
    id: () => clock.id(),
    timer: (delayMs, fire) => clock.timer(delayMs, fire),
  }
}
