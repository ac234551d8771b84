import { describe, expect, it } from 'vitest'
import { gatherer, shareOut, type Outcome } from '../../src/backends/batcher.ts'

/** A sender that holds each batch until the test lets it go. */
function held() {
  const batches: {
    asks: number[]
    settle: (outcomes: Outcome<number>[]) => void
    fail: (error: Error) => void
  }[] = []
  const send = (asks: number[]): Promise<Outcome<number>[]> =>
    new Promise((settle, fail) => batches.push({ asks, settle, fail }))
  const echo = (at: number): void =>
    batches[at]!.settle(batches[at]!.asks.map((ask) => ({ value: ask })))
  return { batches, send, echo }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('gatherer', () => {
  it('sends one call at once, and what comes meanwhile as the next batch', async () => {
    const { batches, send, echo } = held()
    const calls = gatherer({ maxBatches: 1, maxWeight: 100 }, send)
    const first = calls.call(1)
    await turn()
    const others = [2, 3, 4].map((ask) => calls.call(ask))
    await turn()
    expect(batches.map(({ asks }) => asks)).toEqual([[1]])
    echo(0)
    await first
    await turn()
    expect(batches[1]!.asks).toEqual([2, 3, 4])
    echo(1)
    expect(await Promise.all(others)).toEqual([2, 3, 4])
  })

  it('keeps to the weight a batch may have, and to how many may be out', async () => {
    const { batches, send } = held()
    const calls = gatherer({ maxBatches: 2, maxWeight: 10 }, send)
    for (const ask of [1, 2, 3, 4, 5]) void calls.call(ask, 5)
    await turn()
    expect(batches.map(({ asks }) => asks)).toEqual([
      [1, 2],
      [3, 4],
    ])
  })

  it('gives a batch no more than half of a large crowd, wherever the other half is', async () => {
    const crowd = { weight: 0 }
    const [sends, settles] = [held(), held()]
    const limits = { maxBatches: 2, maxWeight: 100, crowd }
    const [sending, settling] = [gatherer(limits, sends.send), gatherer(limits, settles.send)]
    const all = [1, 2, 3, 4].map((ask) => sending.call(ask, 16).then(() => settling.call(ask, 16)))
    await turn()
    expect(sends.batches.map(({ asks }) => asks)).toEqual([
      [1, 2],
      [3, 4],
    ])
    sends.echo(0)
    await turn()
    expect(settles.batches.map(({ asks }) => asks)).toEqual([[1, 2]])
    sends.batches[1]!.fail(new Error('cut'))
    settles.echo(0)
    await Promise.allSettled(all)
    expect(crowd.weight).toBe(0)
  })

  it('keeps a small crowd together', async () => {
    const { batches, send } = held()
    const calls = gatherer({ maxBatches: 2, maxWeight: 100, crowd: { weight: 0 } }, send)
    for (const ask of [1, 2, 3, 4]) void calls.call(ask, 8)
    await turn()
    expect(batches.map(({ asks }) => asks)).toEqual([[1, 2, 3, 4]])
  })

  it('fails one call alone, or the whole batch and no other', async () => {
    const { batches, send, echo } = held()
    const calls = gatherer({ maxBatches: 1, maxWeight: 2 }, send)
    const [good, bad, lost, last] = [1, 2, 3, 4, 5].map((ask) => calls.call(ask))
    await turn()
    batches[0]!.settle([{ value: 1 }, { error: new Error('no') }])
    expect(await good).toBe(1)
    await expect(bad).rejects.toThrow('no')
    await turn()
    batches[1]!.fail(new Error('cut'))
    await expect(lost).rejects.toThrow('cut')
    await expect(last).rejects.toThrow('cut')
    await turn()
    echo(2)
    await calls.idle()
  })

  it('is idle only when nothing is on its way', async () => {
    const { send, echo } = held()
    const calls = gatherer({ maxBatches: 1, maxWeight: 2 }, send)
    await calls.idle()
    const call = calls.call(1)
    let idle = false
    const waiting = calls.idle().then(() => (idle = true))
    await turn()
    expect(idle).toBe(false)
    echo(0)
    await Promise.all([call, waiting])
  })
})

describe('shareOut', () => {
  it('gives each call as many results as it asked for, in order', () => {
    const asks = [['a', 'b'], [], ['c'], ['d', 'e']]
    expect(shareOut([1, 2, 3, 4, 5], asks)).toEqual([[1, 2], [], [3], [4, 5]])
  })
})
