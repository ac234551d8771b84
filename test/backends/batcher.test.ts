import { describe, expect, it } from 'vitest'
import { Batcher, splitResults, type Outcome } from '../../src/backends/batcher.ts'

/** A sender that holds each batch until the test releases it. */
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

describe('Batcher', () => {
  it('sends a single call at once, and the calls made meanwhile as the next batch', async () => {
    const { batches, send, echo } = held()
    const calls = new Batcher({ maxInFlight: 1, maxBatchCost: 100 }, send)
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

  it('limits the cost of a batch and the number of batches in flight', async () => {
    const { batches, send } = held()
    const calls = new Batcher({ maxInFlight: 2, maxBatchCost: 10 }, send)
    for (const ask of [1, 2, 3, 4, 5]) void calls.call(ask, 5)
    await turn()
    expect(batches.map(({ asks }) => asks)).toEqual([
      [1, 2],
      [3, 4],
    ])
  })

  it('fails a single call, or the whole batch and no other', async () => {
    const { batches, send, echo } = held()
    const calls = new Batcher({ maxInFlight: 1, maxBatchCost: 2 }, send)
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

  it('is idle only when nothing is in flight', async () => {
    const { send, echo } = held()
    const calls = new Batcher({ maxInFlight: 1, maxBatchCost: 2 }, send)
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

describe('splitResults', () => {
  it('returns as many results to each call as it requested, in order', () => {
    const asks = [['a', 'b'], [], ['c'], ['d', 'e']]
    expect(splitResults([1, 2, 3, 4, 5], asks)).toEqual([[1, 2], [], [3], [4, 5]])
  })
})
