import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import type { Delivery } from '../../../src/mailbox.ts'
import { Waiters, type Waiter } from '../../../src/backends/kafka/waiters.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'

const clock = fakeClock()

/** A waiter with the promise of its result. */
interface Watched extends Waiter {
  outcome: Promise<Delivery[]>
}

function waiter(waitMs: number, signal = new AbortController().signal): Watched {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<Delivery[]>()
  const ask = { max: 1, visibilityMs: 1000, waitMs, signal }
  return { ask, endMs: clock.mono() + waitMs, resolve, reject, outcome }
}

const outage = new RedriveError('MAILBOX_UNAVAILABLE', 'away')

describe('Waiters', () => {
  it('returns each waiter once, in order', () => {
    const waiters = new Waiters(clock)
    const all = [waiter(1000), waiter(10), waiter(1000)]
    for (const one of all) waiters.add(one)
    expect([waiters.next(), waiters.next(), waiters.next(), waiters.next()]).toEqual([
      ...all,
      undefined,
    ])
    waiters.close()
  })

  it('resolves each waiter without messages at its own timeout', async () => {
    const waiters = new Waiters(clock)
    const [late, soon] = [waiter(1000), waiter(10)]
    waiters.add(late)
    waiters.add(soon)
    await clock.advance(10)
    expect(await soon.outcome).toEqual([])
    expect(waiters.size).toBe(1)
    await clock.advance(990)
    expect(await late.outcome).toEqual([])
    expect(clock.pending()).toBe(0)
  })

  it('removes only the waiters whose signal aborts', async () => {
    const waiters = new Waiters(clock)
    const stop = new AbortController()
    const [one, other, stays] = [waiter(1000, stop.signal), waiter(1000, stop.signal), waiter(1000)]
    for (const each of [one, other, stays]) waiters.add(each)
    expect(waiters.next()).toBe(one)
    stop.abort()
    expect(await other.outcome).toEqual([])
    expect(waiters.next()).toBe(stays)
    waiters.close()
  })

  it('rejects waiters in an outage, and later waiters after a pause unless the outage has ended', async () => {
    const waiters = new Waiters(clock)
    const there = waiter(60_000)
    waiters.add(there)
    waiters.fail(outage)
    await expect(there.outcome).rejects.toBe(outage)
    const later = waiter(60_000)
    const refused = expect(later.outcome).rejects.toBe(outage)
    waiters.add(later)
    await clock.advance(500)
    await refused
    const lucky = waiter(60_000)
    waiters.add(lucky)
    waiters.recover()
    await clock.advance(59_000)
    expect(waiters.size).toBe(1)
    await clock.advance(1000)
    expect(await lucky.outcome).toEqual([])
  })
})
