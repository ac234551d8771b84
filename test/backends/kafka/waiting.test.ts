import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import type { Delivery } from '../../../src/mailbox.ts'
import { Waiting, type Waiter } from '../../../src/backends/kafka/waiting.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'

const clock = fakeClock()

/** What became of somebody who waits. */
interface Watched extends Waiter {
  outcome: Promise<Delivery[]>
}

function waiter(waitMs: number, signal = new AbortController().signal): Watched {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<Delivery[]>()
  const ask = { max: 1, visibilityMs: 1000, waitMs, signal }
  return { ask, endMs: clock.mono() + waitMs, resolve, reject, outcome }
}

const onError = new RedriveError('MAILBOX_UNAVAILABLE', 'away')

describe('Waiting', () => {
  it('calls those who wait in the order of coming, each once', () => {
    const waiting = new Waiting(clock)
    const all = [waiter(1000), waiter(10), waiter(1000)]
    for (const one of all) waiting.add(one)
    expect([waiting.next(), waiting.next(), waiting.next(), waiting.next()]).toEqual([
      ...all,
      undefined,
    ])
    waiting.close()
  })

  it('gives nothing to each when its own time is over', async () => {
    const waiting = new Waiting(clock)
    const [late, soon] = [waiter(1000), waiter(10)]
    waiting.add(late)
    waiting.add(soon)
    await clock.advance(10)
    expect(await soon.outcome).toEqual([])
    expect(waiting.size).toBe(1)
    await clock.advance(990)
    expect(await late.outcome).toEqual([])
    expect(clock.pending()).toBe(0)
  })

  it('lets go of those who give up, and of nobody else who shares nothing with them', async () => {
    const waiting = new Waiting(clock)
    const leaving = new AbortController()
    const [one, other, stays] = [
      waiter(1000, leaving.signal),
      waiter(1000, leaving.signal),
      waiter(1000),
    ]
    for (const each of [one, other, stays]) waiting.add(each)
    expect(waiting.next()).toBe(one)
    leaving.abort()
    expect(await other.outcome).toEqual([])
    expect(waiting.next()).toBe(stays)
    waiting.close()
  })

  it('tells all of onError, and whoever comes later after a moment unless it is over by then', async () => {
    const waiting = new Waiting(clock)
    const there = waiter(60_000)
    waiting.add(there)
    waiting.fail(onError)
    await expect(there.outcome).rejects.toBe(onError)
    const later = waiter(60_000)
    const refused = expect(later.outcome).rejects.toBe(onError)
    waiting.add(later)
    await clock.advance(500)
    await refused
    const lucky = waiter(60_000)
    waiting.add(lucky)
    waiting.well()
    await clock.advance(59_000)
    expect(waiting.size).toBe(1)
    await clock.advance(1000)
    expect(await lucky.outcome).toEqual([])
  })
})
