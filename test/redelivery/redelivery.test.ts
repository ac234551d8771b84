import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { exponential, fixed, immediate } from '../../src/policy/backoff.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import { resolve } from '../../src/letter/moves.ts'
import type { ClaimRequest } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aQueue, deferred, forbidden, refused, timedOut } from '../a-queue.ts'

describe('Redelivery', () => {
  it('runs due letters at once, without waiting for a poll', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate(), pollMs: 60_000 })
    dlq.handle('a', () => {})
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(0)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })

  it('wakes exactly when a letter becomes due, regardless of the poll interval', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: fixed(7_000), pollMs: 3_600_000 })
    dlq.handle('a', () => {})
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(6_999)
    expect(eventsOf('started')).toEqual([])
    await clock.advance(1)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })

  it('does not treat effects of a letter that a run captured as part of that run', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: immediate() })
    const notify = dlq.guard('notify', () => Promise.reject(refused()))
    dlq.on(
      'resolved',
      ({ letter }) => letter.queue === 'other' && notify(letter.id).catch(() => {}),
    )
    const [go, end] = [deferred(), deferred()]
    dlq.handle('a', async () => {
      await go.promise
      await dlq.enqueue({ type: 'other' }, refused())
      await end.promise
      throw forbidden()
    })
    dlq.handle('other', () => {})
    await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(0)
    go.resolve()
    await clock.advance(0)
    end.resolve()
    await clock.advance(0)
    expect((await store.find({ queue: 'notify' })).items).toHaveLength(1)
    await dlq.close()
  })

  it('runs a handler outside of the async context that captured the letter', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const request = new AsyncLocalStorage<string>()
    const seen: unknown[] = []
    dlq.handle('a', () => seen.push(request.getStore()))
    dlq.start()
    await clock.advance(0)
    await request.run('a request', () => dlq.enqueue({ type: 'a' }, refused()))
    await clock.advance(0)
    expect(seen).toEqual([undefined])
    await dlq.close()
  })

  it('claims once for all runs that end together', async () => {
    const limits: number[] = []
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxConcurrent: 8 }, (fake) => {
      const store = memoryStore({ clock: fake })
      const claim = store.claim.bind(store)
      return Object.assign(store, {
        claim: (request: ClaimRequest) => {
          limits.push(request.limit)
          return claim(request)
        },
      })
    })
    await dlq.enqueueAll(
      Array.from({ length: 24 }, () => ({ operation: { type: 'a' }, error: refused() })),
    )
    dlq.handle('a', async () => {})
    dlq.start()
    await clock.advance(0)
    expect(await dlq.stats()).toMatchObject({ states: { resolved: 24 } })
    expect(limits.slice(0, 3)).toEqual([8, 8, 8])
    await dlq.close()
  })

  it('leaves no timer behind when it stops during a claim', async () => {
    const claiming = deferred()
    const answer = deferred()
    const { dlq, clock } = await aQueue({ pollMs: 3_600_000, alerts: false }, (fake) => {
      const store = memoryStore({ clock: fake })
      const claim = store.claim.bind(store)
      return Object.assign(store, {
        claim: async (request: ClaimRequest) => {
          claiming.resolve()
          await answer.promise
          return claim(request)
        },
      })
    })
    dlq.handle('a', () => {})
    dlq.start()
    await claiming.promise
    const closed = dlq.close()
    answer.resolve()
    await closed
    expect(clock.pending()).toBe(0)
  })

  it('gives the handler the input, the attempt, a signal, an idempotency key and the epoch', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const seen: unknown[] = []
    dlq.handle('a', ({ letter, input, attempt, signal, idempotencyKey, epoch }) => {
      seen.push({
        input,
        attempt,
        aborted: signal.aborted,
        idempotencyKey,
        epoch,
        state: letter.state,
      })
      if (attempt < 2) throw timedOut()
    })
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a', payload: { when: new Date(0) } }, refused())
    await clock.advance(10)
    const common = {
      input: { when: new Date(0) },
      aborted: false,
      idempotencyKey: `${id}:1:0`,
      state: 'retrying',
    }
    expect(seen).toEqual([
      { ...common, attempt: 1, epoch: 1 },
      { ...common, attempt: 2, epoch: 2 },
    ])
    await dlq.close()
  })

  it('backs off longer after each failure and exhausts the letter after exactly maxRetries runs', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: exponential({ baseMs: 1000, factor: 2, maxMs: 60_000 }),
      maxRetries: 3,
    })
    const at: number[] = []
    const start = clock.now()
    dlq.handle('a', () => {
      at.push(clock.now() - start)
      throw timedOut()
    })
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(120_000)
    expect(at).toEqual([1000, 3000, 7000])
    expect(await dlq.get(id)).toMatchObject({
      state: 'exhausted',
      reason: 'retries-exhausted',
      retries: 3,
    })
    expect(eventsOf('rescheduled')).toHaveLength(2)
    expect(eventsOf('exhausted')).toHaveLength(1)
    await dlq.close()
  })

  it('classifies every failure: a permanent one ends the retries at once', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    dlq.handle('a', () => Promise.reject(forbidden()))
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10)
    const letter = (await dlq.get(id))!
    expect(letter).toMatchObject({
      state: 'parked',
      reason: 'permanent',
      category: 'permission',
      retries: 1,
    })
    expect(letter.firstFailure.code).toBe('ECONNREFUSED')
    expect(letter.failure.status).toBe(403)
    await dlq.close()
  })

  it('waits as long as the other side asked', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: fixed(10) })
    dlq.handle('a', ({ attempt }) => {
      if (attempt === 1)
        throw Object.assign(new Error('slow down'), { status: 429, retryAfterMs: 30_000 })
    })
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(29_999)
    expect(eventsOf('resolved')).toEqual([])
    await clock.advance(100)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })

  it('never runs more than maxConcurrent at a time, and fills a slot as soon as it is free', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxConcurrent: 3 })
    const gates = Array.from({ length: 8 }, () => deferred())
    let running = 0
    let most = 0
    let begun = 0
    dlq.handle('a', async () => {
      running++
      most = Math.max(most, running)
      await gates[begun++]!.promise
      running--
    })
    for (let n = 0; n < 8; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(0)
    expect(begun).toBe(3)
    gates[0]!.resolve()
    await clock.advance(0)
    expect(begun).toBe(4)
    for (const gate of gates) gate.resolve()
    await clock.advance(0)
    expect({ begun, most }).toEqual({ begun: 8, most: 3 })
    await dlq.close()
  })

  it('renews the lease of a handler that takes longer', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: immediate(),
      leaseMs: 3000,
      timeoutMs: 100_000,
    })
    const work = deferred()
    dlq.handle('a', () => work.promise)
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(20_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'retrying', epoch: 1 })
    work.resolve()
    await clock.advance(0)
    expect(eventsOf('lease-lost')).toEqual([])
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })

  it('rejects a late result after someone else settled the letter, and aborts the signal', async () => {
    const { dlq, clock, eventsOf, store } = await aQueue({ backoff: immediate(), leaseMs: 3000 })
    const work = deferred()
    let signal: AbortSignal | undefined
    dlq.handle('a', (run) => {
      signal = run.signal
      return work.promise
    })
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(0)
    const [leased] = await store.get([id])
    await store.apply([
      resolve(leased!, { at: toTimestamp(clock.now()), actor: 'mia', guard: 'version' }),
    ])
    await clock.advance(1500)
    expect(signal?.aborted).toBe(true)
    work.resolve()
    await clock.advance(0)
    expect(eventsOf('lease-lost')).toHaveLength(1)
    expect(eventsOf('resolved')).toEqual([])
    expect((await dlq.get(id))!.history.at(-1)!.actor).toBe('mia')
    await dlq.close()
  })

  it('aborts the signal before the lease ends when the store does not answer', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: immediate(), leaseMs: 3000 })
    const answer = deferred<boolean[]>()
    store.renew = () => answer.promise
    const end = deferred()
    const reasons: unknown[] = []
    dlq.handle('a', async ({ signal }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason))
      await end.promise
    })
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(0)
    await clock.advance(2999)
    expect(reasons).toMatchObject([{ code: 'LEASE_LOST' }])
    end.resolve()
    answer.resolve([false])
    await dlq.close()
  })

  it('does not count lost leases as failures of the dependency', async () => {
    const { dlq, clock, eventsOf, store } = await aQueue({
      backoff: immediate(),
      leaseMs: 3000,
      breaker: { failures: 3, openMs: 60_000 },
    })
    const untilTold = (signal: AbortSignal): Promise<void> =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      )
    dlq.handle('a', ({ signal }) => untilTold(signal))
    dlq.start()
    const ids: string[] = []
    for (let n = 0; n < 8; n++) ids.push((await dlq.enqueue({ type: 'a' }, refused())).id)
    await clock.advance(0)
    const by = { at: toTimestamp(clock.now()), actor: 'mia', guard: 'version' } as const
    await store.apply((await store.get(ids)).map((letter) => resolve(letter, by)))
    await clock.advance(1500)
    expect(eventsOf('lease-lost')).toHaveLength(8)
    expect(eventsOf('breaker')).toEqual([])
    await dlq.close()
  })

  it('aborts a handler that takes too long and counts it as a timeout', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: fixed(60_000),
      timeoutMs: 1000,
      graceMs: 500,
    })
    dlq.handle(
      'a',
      ({ signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        ),
    )
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { priority: 'critical' })
    await clock.advance(1000)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', category: 'timeout', retries: 1 })
    expect(eventsOf('stuck')).toEqual([])
    await dlq.close()
  })

  it('frees the letter of a handler that ignores its signal, and ignores its late result', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: fixed(60_000),
      timeoutMs: 1000,
      graceMs: 500,
    })
    const work = deferred()
    dlq.handle('a', () => work.promise)
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { priority: 'critical' })
    await clock.advance(1500)
    expect(eventsOf('stuck')).toHaveLength(1)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', category: 'timeout' })
    work.resolve()
    await clock.advance(0)
    expect(eventsOf('resolved')).toEqual([])
    expect(await dlq.get(id)).toMatchObject({ state: 'pending' })
    await dlq.close()
  })

  it('reports stuck handlers in health, which is not ok once they occupy all slots', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: immediate(),
      maxConcurrent: 2,
      timeoutMs: 1000,
      graceMs: 500,
    })
    const work = deferred()
    dlq.handle('hangs', () => work.promise)
    dlq.handle('fine', () => {})
    dlq.start()
    const hang = () => dlq.enqueue({ type: 'hangs' }, refused(), { maxRetries: 1 })
    await hang()
    await clock.advance(1500)
    expect(await dlq.health()).toMatchObject({
      ok: true,
      problems: [expect.stringMatching(/^1 of 2 slots .* handlers of hangs .* restart/)],
    })
    await hang()
    await clock.advance(1500)
    await dlq.enqueue({ type: 'fine' }, refused())
    await clock.advance(10_000)
    expect(eventsOf('resolved')).toEqual([])
    expect(await dlq.health()).toMatchObject({
      ok: false,
      problems: [expect.stringMatching(/^2 of 2 slots/)],
    })
    work.resolve()
    await clock.advance(0)
    expect(eventsOf('resolved')).toHaveLength(1)
    expect(await dlq.health()).toMatchObject({ ok: true, problems: [] })
    await dlq.close()
  })

  it('counts success within the grace period as success', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: immediate(),
      timeoutMs: 1000,
      graceMs: 500,
    })
    dlq.handle(
      'a',
      ({ signal }) =>
        new Promise((done) => signal.addEventListener('abort', () => done(undefined))),
    )
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(1000)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })

  type Then = (done: (value: unknown) => void, fail: (error: unknown) => void) => void
  // oxlint-disable-next-line unicorn/no-thenable -- what a handler may return is what is tested
  const thenable = (then: Then): unknown => ({ then })
  it.each<[string, () => unknown, string]>([
    ['nothing', () => undefined, 'resolved'],
    ['a plain value', () => 42, 'resolved'],
    [
      'a thenable that answers twice',
      () => thenable((done, fail) => (done(1), fail(refused()), done(2))),
      'resolved',
    ],
    [
      'a thenable that throws',
      () =>
        thenable(() => {
          throw timedOut()
        }),
      'exhausted',
    ],
  ])('has one defined result when a handler returns %s', async (_what, handler, state) => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate(), maxRetries: 1 })
    dlq.handle('a', handler)
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10)
    expect((await dlq.get(id))!.state).toBe(state)
    expect(eventsOf('lease-lost')).toEqual([])
    await dlq.close()
  })

  it('parks a letter whose payload cannot be decoded, without running or counting it', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate() })
    dlq.handle('a', () => {})
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a', payload: '{"broken' }, refused(), {
      contentType: 'application/json',
    })
    await clock.advance(10)
    expect(eventsOf('started')).toEqual([])
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'malformed', retries: 0 })
    await dlq.close()
  })

  it('parks a letter that crashes its workers after exactly its limit of runs', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: immediate(), leaseMs: 1000 })
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { maxRetries: 2 })
    for (let crash = 0; crash < 2; crash++) {
      const claimed = await store.claim({ worker: `dead-${crash}`, limit: 1, leaseMs: 1000 })
      expect(claimed.letters).toHaveLength(1)
      await clock.advance(1001)
    }
    let runs = 0
    dlq.handle('a', () => void runs++)
    dlq.start()
    await clock.advance(10)
    expect(runs).toBe(0)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'crash-loop', retries: 2 })
    await dlq.close()
  })

  it('stops claiming from a queue whose dependency is down, without using up retries', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: immediate(),
      maxRetries: 5,
      breaker: { failures: 5, openMs: 30_000 },
    })
    let up = false
    let calls = 0
    dlq.handle('down', () => {
      calls++
      if (!up) throw refused()
    })
    dlq.handle('fine', () => {})
    for (let n = 0; n < 50; n++) await dlq.enqueue({ type: 'down', payload: n }, refused())
    await dlq.enqueue({ type: 'fine' }, refused())
    dlq.start()
    await clock.advance(20_000)
    expect(eventsOf('breaker').map((event) => event.state)).toEqual(['open'])
    expect(calls).toBeLessThan(25)
    const spent = (await dlq.find({ queue: 'down', limit: 100 })).items.map(
      (letter) => letter.retries,
    )
    expect(Math.max(...spent)).toBeLessThanOrEqual(2)
    expect((await dlq.find({ queue: 'fine', state: 'resolved' })).items).toHaveLength(1)
    up = true
    await clock.advance(60_000)
    expect((await dlq.stats()).states).toMatchObject({ resolved: 51, pending: 0 })
    expect(eventsOf('breaker').at(-1)).toMatchObject({ state: 'closed' })
    await dlq.close()
  })

  it('continues after an outage of the store, and settles the pending results', async () => {
    let down = false
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate() }, (fake) => {
      const inner = memoryStore({ clock: fake })
      const fail = (verb: 'claim' | 'apply'): void => {
        const real = inner[verb].bind(inner) as (...args: unknown[]) => Promise<never>
        Object.assign(inner, {
          [verb]: async (...args: unknown[]) =>
            down ? Promise.reject(new Error('store down')) : real(...args),
        })
      }
      fail('claim')
      fail('apply')
      return inner
    })
    dlq.handle('a', () => void (down = true))
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(2000)
    expect(eventsOf('resolved')).toEqual([])
    expect(eventsOf('error').length).toBeGreaterThan(0)
    down = false
    await clock.advance(10_000)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })

  it('is not disturbed by observers that throw, reject or hang', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: immediate(),
      observers: [
        () => {
          throw new Error('observer broke')
        },
        async () => Promise.reject(new Error('observer rejected')),
        () => new Promise(() => {}),
      ],
    })
    dlq.handle('a', () => {})
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(0)
    expect(eventsOf('resolved')).toHaveLength(1)
    expect(eventsOf('error').length).toBeGreaterThan(0)
    await dlq.close()
  })
})
