import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { fixed } from '../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { aQueue, deferred, forbidden, refused, type QueueBench } from '../a-queue.ts'

/** A letter that is due in an hour, unless it is retried. */
async function aLetterOf(
  handler: () => unknown,
): Promise<
  QueueBench & { letter: DeadLetter; wait: (signal?: AbortSignal) => Promise<DeadLetter> }
> {
  const bench = await aQueue({ backoff: fixed(3_600_000), maxRetries: 2 })
  bench.dlq.handle('a', handler)
  const letter = await bench.dlq.enqueue({ type: 'a' }, refused())
  const wait = (signal?: AbortSignal): Promise<DeadLetter> =>
    bench.dlq.retry(letter.id, 'mia', { wait: true, ...(signal ? { signal } : {}) })
  return { ...bench, letter, wait }
}

/** Whether a promise has settled by now. */
function settled(promise: Promise<unknown>): () => boolean {
  let done = false
  const note = (): void => void (done = true)
  promise.then(note, note)
  return () => done
}

describe('retry with wait', () => {
  it.each<[string, () => unknown, Partial<DeadLetter>]>([
    ['resolved', () => {}, { state: 'resolved', retries: 1 }],
    ['rescheduled', () => Promise.reject(new Error('odd')), { state: 'pending', retries: 1 }],
    ['parked', () => Promise.reject(forbidden()), { state: 'parked', reason: 'permanent' }],
  ])('resolves with the letter after the run: %s', async (_name, handler, expected) => {
    const { dlq, clock, wait } = await aLetterOf(handler)
    dlq.start()
    const waiting = wait()
    await clock.advance(1)
    expect(await waiting).toMatchObject(expected)
    await dlq.close()
  })

  it('finds runs of other processes by polling', async () => {
    const { dlq, clock, store, wait } = await aLetterOf(() => {})
    const other = await DeadLetterQueue.open(store, { clock, worker: 'worker-2' })
    other.handle('a', () => {})
    const waiting = wait()
    other.start()
    await clock.advance(3000)
    const letter = await waiting
    expect(letter).toMatchObject({ state: 'resolved' })
    expect(letter.history.at(-1)).toMatchObject({ actor: 'worker-2' })
    await other.close()
    await dlq.close()
  })

  it('continues after a released run, and after other retries of the letter', async () => {
    const { promise: stuck } = deferred()
    let runs = 0
    const { dlq, clock, letter, wait } = await aLetterOf(() => (++runs === 1 ? stuck : undefined))
    dlq.start()
    const waiting = wait()
    const isSettled = settled(waiting)
    await clock.advance(1)
    const stopping = dlq.stop({ drainMs: 10 })
    await clock.advance(30_000)
    await stopping
    await dlq.retry(letter.id, 'tom')
    await dlq.edit(letter.id, { tags: ['x'], reason: 'r', by: 'tom' })
    await clock.advance(5000)
    expect(isSettled()).toBe(false)
    dlq.start()
    await clock.advance(1)
    expect(await waiting).toMatchObject({ state: 'resolved', retries: 1, tags: ['x'] })
    await dlq.close()
  })

  it('ends when someone settles the letter or reports its run', async () => {
    const { dlq, clock, letter, wait } = await aLetterOf(() => {})
    for (const act of [
      () => dlq.fail(letter.id, refused()),
      () => dlq.park(letter.id),
      () => dlq.resolve(letter.id),
    ]) {
      const waiting = wait()
      await clock.advance(0)
      const now = await act()
      expect(await waiting).toEqual(now)
    }
    await dlq.close()
  })

  it('rejects when the letter is removed, and when the queue is closed', async () => {
    const { dlq, clock, letter, wait } = await aLetterOf(() => {})
    const removed = expect(wait()).rejects.toMatchObject({ code: 'LETTER_NOT_FOUND' })
    await clock.advance(0)
    await dlq.remove(letter.id)
    await clock.advance(1000)
    await removed
    const other = await dlq.enqueue({ type: 'a' }, refused())
    const closed = expect(dlq.retry(other.id, 'mia', { wait: true })).rejects.toMatchObject({
      code: 'CLOSED',
    })
    await clock.advance(0)
    await dlq.close()
    await clock.advance(1000)
    await closed
    expect(clock.pending()).toBe(0)
  })

  it('ends when its signal aborts, and the letter stays due', async () => {
    const { dlq, clock, letter, wait } = await aLetterOf(() => {})
    const control = new AbortController()
    const waiting = expect(wait(control.signal)).rejects.toThrow('enough')
    await clock.advance(1500)
    control.abort(new Error('enough'))
    await waiting
    expect(await dlq.get(letter.id)).toMatchObject({ state: 'pending' })
    expect(clock.pending()).toBe(0)
    await expect(wait(control.signal)).rejects.toThrow('enough')
    expect((await dlq.get(letter.id))!.history.at(-1)).toMatchObject({ actor: 'mia' })
    expect((await dlq.stats()).lifetime.manuallyRetried).toBe(1)
    await dlq.close()
  })

  it('continues polling while the store is unreachable', async () => {
    const { dlq, clock, store, letter, wait } = await aLetterOf(() => {})
    const get = store.get.bind(store)
    let polls = 0
    const waiting = wait()
    await clock.advance(0)
    store.get = async () => {
      polls++
      throw new RedriveError('STORE_UNAVAILABLE', 'gone for a while')
    }
    await clock.advance(3000)
    expect(polls).toBe(3)
    store.get = get
    await dlq.resolve(letter.id)
    expect(await waiting).toMatchObject({ state: 'resolved' })
    await dlq.close()
  })
})
