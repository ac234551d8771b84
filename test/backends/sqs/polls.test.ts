import type { Message } from '@aws-sdk/client-sqs'
import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../../src/clock/clock.ts'
import type { PollRequest } from '../../../src/backends/sqs/poll-group.ts'
import { Polls } from '../../../src/backends/sqs/polls.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'

interface Poll {
  ask: PollRequest
  answer: (count: number) => Promise<void>
  fail: (error: Error) => Promise<void>
}

interface Bench {
  clock: FakeClock
  polls: Polls
  /** Polls in the order of their start. */
  started: Poll[]
  released: Message[]
  /** Takes this often with the same request, in one tick. */
  ask: (times: number, ask?: Partial<PollRequest>, signal?: AbortSignal) => Promise<Message[]>[]
}

function setUp({ shared = true } = {}): Bench {
  const clock = fakeClock()
  const started: Poll[] = []
  const released: Message[] = []
  let made = 0
  const start = (ask: PollRequest): Promise<Message[]> =>
    new Promise((resolve, reject) => {
      const answer = (count: number): Promise<void> => {
        resolve(Array.from({ length: count }, () => ({ MessageId: String(made++) })))
        return nextTurn()
      }
      const fail = (error: Error): Promise<void> => (reject(error), nextTurn())
      started.push({ ask, answer, fail })
    })
  const release = (messages: Message[]): void => void released.push(...messages)
  const polls = new Polls({ clock, shared, start, release })
  const ask: Bench['ask'] = (times, options = {}, signal = new AbortController().signal) =>
    Array.from({ length: times }, () =>
      polls.take({ max: 1, visibilitySeconds: 30, waitSeconds: 20, ...options }, signal),
    )
  return { clock, polls, started, released, ask }
}

const asks = (started: Poll[]): PollRequest[] => started.map(({ ask }) => ask)
const maxima = (started: Poll[]): number[] => started.map(({ ask }) => ask.max)

/** The result of each call. Undefined: it still waits. */
async function lengths(waiting: Promise<Message[]>[]): Promise<(number | undefined)[]> {
  const still = nextTurn().then(() => undefined)
  return Promise.all(waiting.map((one) => Promise.race([one.then(({ length }) => length), still])))
}

describe('Polls', () => {
  it('are shared by up to ten waiters with the same request', async () => {
    const { ask, started, released } = setUp()
    const waiting = ask(12)
    await nextTurn()
    expect(asks(started)).toEqual([
      { max: 10, visibilitySeconds: 30, waitSeconds: 20 },
      { max: 2, visibilitySeconds: 30, waitSeconds: 20 },
    ])
    await started[0]!.answer(10)
    await started[1]!.answer(2)
    const found = await Promise.all(waiting)
    expect(new Set(found.map(([message]) => message!.MessageId)).size).toBe(12)
    expect(released).toEqual([])
  })

  it('give each waiter up to its maximum, and continue for waiters without messages', async () => {
    const { ask, started } = setUp()
    const waiting = ask(3, { max: 3 })
    await nextTurn()
    expect(maxima(started)).toEqual([9])
    await started[0]!.answer(4)
    expect(await lengths(waiting)).toEqual([3, 1, undefined])
    expect(maxima(started)).toEqual([9, 3])
  })

  it('never request more than the waiters would take', async () => {
    const { ask, started, released } = setUp()
    const waiting = [...ask(1, { max: 10 }), ...ask(1, { max: 3 }), ...ask(7)]
    await nextTurn()
    expect(maxima(started)).toEqual([10, 3, 7])
    // Whichever returns first, and however little it brings, the others request no more than is
    // wanted.
    await started[1]!.answer(1)
    await started[2]!.answer(2)
    await started[0]!.answer(10)
    expect(maxima(started)).toEqual([10, 3, 7, 5])
    await started[3]!.answer(5)
    expect(await lengths(waiting)).toEqual([10, 1, 1, 1, 1, 1, 1, 1, 1])
    expect(released).toEqual([])
  })

  it('are separate for different visibility times', async () => {
    const { ask, started } = setUp()
    const [short] = ask(1, { visibilitySeconds: 1 })
    const [long] = ask(1, { visibilitySeconds: 60 })
    await nextTurn()
    expect(asks(started).map(({ visibilitySeconds }) => visibilitySeconds)).toEqual([1, 60])
    await started[1]!.answer(1)
    expect(await lengths([short!, long!])).toEqual([undefined, 1])
  })

  it('are limited in number, and later waiters share the next one', async () => {
    const { ask, started } = setUp()
    for (let n = 0; n < 30; n++) {
      void ask(1)
      await nextTurn()
    }
    expect(maxima(started)).toEqual([1, 1, 1, 1, 1, 1, 1, 1])
    await started[0]!.answer(1)
    expect(maxima(started).slice(8)).toEqual([10])
  })

  it('serve one waiter each if messages must not be shared', async () => {
    const { ask, started } = setUp({ shared: false })
    void ask(12)
    await nextTurn()
    expect(maxima(started)).toEqual(Array.from({ length: 12 }, () => 1))
  })

  it('continue for the next waiter when one gives up', async () => {
    const { ask, started } = setUp()
    const stop = new AbortController()
    const [gone] = ask(1, {}, stop.signal)
    await nextTurn()
    stop.abort()
    expect(await gone).toEqual([])
    const [next] = ask(1)
    await nextTurn()
    expect(started).toHaveLength(1)
    await started[0]!.answer(1)
    expect(await next).toHaveLength(1)
  })

  it('release messages at once that no waiter wants', async () => {
    const { ask, started, released, polls } = setUp()
    const stop = new AbortController()
    const [first, second] = ask(2, {}, stop.signal)
    const [stays] = ask(1)
    await nextTurn()
    stop.abort()
    expect(await Promise.all([first!, second!])).toEqual([[], []])
    const answered = started[0]!.answer(3)
    await polls.idle()
    expect(released.map(({ MessageId }) => MessageId)).toEqual(['1', '2'])
    await answered
    expect(await stays).toEqual([{ MessageId: '0' }])
  })

  it('do not start for waiters that gave up in the same tick', async () => {
    const { ask, started } = setUp()
    const stop = new AbortController()
    const waiting = ask(3, {}, stop.signal)
    stop.abort()
    await nextTurn()
    expect(await Promise.all(waiting)).toEqual([[], [], []])
    expect(started).toEqual([])
  })

  it('start again for a caller that does not wait', async () => {
    const { ask, started } = setUp()
    void ask(1)
    await nextTurn()
    const [now] = ask(1, { waitSeconds: 0 })
    await nextTurn()
    expect(asks(started).map(({ waitSeconds }) => waitSeconds)).toEqual([20, 0])
    await started[1]!.answer(0)
    expect(await now).toEqual([])
  })

  it('last no longer than the limit of SQS, and are repeated for longer waits', async () => {
    const { ask, started, clock } = setUp()
    const [waiting] = ask(1, { waitSeconds: 45 })
    await nextTurn()
    for (const poll of [0, 1]) {
      await clock.advance(20_000)
      await started[poll]!.answer(0)
    }
    expect(asks(started).map(({ waitSeconds }) => waitSeconds)).toEqual([20, 20, 5])
    await clock.advance(5000)
    await started[2]!.answer(0)
    expect(await waiting).toEqual([])
    expect(started).toHaveLength(3)
  })

  it('do not delay waiters with a shorter wait', async () => {
    const { ask, started, clock } = setUp()
    const stop = new AbortController()
    void ask(1, {}, stop.signal)
    await nextTurn()
    stop.abort()
    const [short] = ask(1, { waitSeconds: 1 })
    await clock.advance(2000)
    expect(await short).toEqual([])
    expect(started).toHaveLength(1)
  })

  it('reject as many waiters as they were for', async () => {
    const { ask, started } = setUp()
    const waiting = ask(12)
    await nextTurn()
    const results = Promise.allSettled(waiting.slice(0, 10))
    await started[0]!.fail(new Error('away'))
    expect((await results).map(({ status }) => status)).toEqual(
      Array.from({ length: 10 }, () => 'rejected'),
    )
    expect(await lengths(waiting.slice(10))).toEqual([undefined, undefined])
    await started[1]!.answer(2)
    expect(await lengths(waiting.slice(10))).toEqual([1, 1])
  })
})
