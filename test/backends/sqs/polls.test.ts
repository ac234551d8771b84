import type { Message } from '@aws-sdk/client-sqs'
import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../../src/clock/clock.ts'
import type { PollAsk } from '../../../src/backends/sqs/line.ts'
import { Polls } from '../../../src/backends/sqs/polls.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'

interface Poll {
  ask: PollAsk
  answer: (count: number) => Promise<void>
  fail: (error: Error) => Promise<void>
}

interface Scene {
  clock: FakeClock
  polls: Polls
  /** Those that were started, the first one first. */
  started: Poll[]
  givenBack: Message[]
  /** Asks so often for the same, in one turn. */
  ask: (times: number, ask?: Partial<PollAsk>, signal?: AbortSignal) => Promise<Message[]>[]
}

function scene({ shared = true } = {}): Scene {
  const clock = fakeClock()
  const started: Poll[] = []
  const givenBack: Message[] = []
  let made = 0
  const start = (ask: PollAsk): Promise<Message[]> =>
    new Promise((resolve, reject) => {
      const answer = (count: number): Promise<void> => {
        resolve(Array.from({ length: count }, () => ({ MessageId: String(made++) })))
        return nextTurn()
      }
      const fail = (error: Error): Promise<void> => (reject(error), nextTurn())
      started.push({ ask, answer, fail })
    })
  const giveBack = (messages: Message[]): void => void givenBack.push(...messages)
  const polls = new Polls({ clock, shared, start, giveBack })
  const ask: Scene['ask'] = (times, asked = {}, signal = new AbortController().signal) =>
    Array.from({ length: times }, () =>
      polls.take({ max: 1, visibilitySeconds: 30, waitSeconds: 20, ...asked }, signal),
    )
  return { clock, polls, started, givenBack, ask }
}

const asks = (started: Poll[]): PollAsk[] => started.map(({ ask }) => ask)
const maxima = (started: Poll[]): number[] => started.map(({ ask }) => ask.max)

/** What each has got. Undefined: it still waits. */
async function lengths(waiting: Promise<Message[]>[]): Promise<(number | undefined)[]> {
  const still = nextTurn().then(() => undefined)
  return Promise.all(waiting.map((one) => Promise.race([one.then(({ length }) => length), still])))
}

describe('Polls', () => {
  it('share: one asks for up to ten who wait for the same', async () => {
    const { ask, started, givenBack } = scene()
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
    expect(givenBack).toEqual([])
  })

  it('give each as much as it takes, and go on for those who got nothing', async () => {
    const { ask, started } = scene()
    const waiting = ask(3, { max: 3 })
    await nextTurn()
    expect(maxima(started)).toEqual([9])
    await started[0]!.answer(4)
    expect(await lengths(waiting)).toEqual([3, 1, undefined])
    expect(maxima(started)).toEqual([9, 3])
  })

  it('never ask for more than those who wait would take', async () => {
    const { ask, started, givenBack } = scene()
    const waiting = [...ask(1, { max: 10 }), ...ask(1, { max: 3 }), ...ask(7)]
    await nextTurn()
    expect(maxima(started)).toEqual([10, 3, 7])
    // Whichever comes first, and however little it brings, the others have no more on their way than is wanted.
    await started[1]!.answer(1)
    await started[2]!.answer(2)
    await started[0]!.answer(10)
    expect(maxima(started)).toEqual([10, 3, 7, 5])
    await started[3]!.answer(5)
    expect(await lengths(waiting)).toEqual([10, 1, 1, 1, 1, 1, 1, 1, 1])
    expect(givenBack).toEqual([])
  })

  it('keep those apart who want messages hidden for other times', async () => {
    const { ask, started } = scene()
    const [short] = ask(1, { visibilitySeconds: 1 })
    const [long] = ask(1, { visibilitySeconds: 60 })
    await nextTurn()
    expect(asks(started).map(({ visibilitySeconds }) => visibilitySeconds)).toEqual([1, 60])
    await started[1]!.answer(1)
    expect(await lengths([short!, long!])).toEqual([undefined, 1])
  })

  it('are few, and those who come meanwhile share the next one', async () => {
    const { ask, started } = scene()
    for (let n = 0; n < 30; n++) {
      void ask(1)
      await nextTurn()
    }
    expect(maxima(started)).toEqual([1, 1, 1, 1, 1, 1, 1, 1])
    await started[0]!.answer(1)
    expect(maxima(started).slice(8)).toEqual([10])
  })

  it('serve one each where what comes together must stay together', async () => {
    const { ask, started } = scene({ shared: false })
    void ask(12)
    await nextTurn()
    expect(maxima(started)).toEqual(Array.from({ length: 12 }, () => 1))
  })

  it('go on for the next one when somebody gives up', async () => {
    const { ask, started } = scene()
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

  it('give back at once what nobody waits for any more', async () => {
    const { ask, started, givenBack, polls } = scene()
    const stop = new AbortController()
    const [first, second] = ask(2, {}, stop.signal)
    const [stays] = ask(1)
    await nextTurn()
    stop.abort()
    expect(await Promise.all([first!, second!])).toEqual([[], []])
    const answered = started[0]!.answer(3)
    await polls.idle()
    expect(givenBack.map(({ MessageId }) => MessageId)).toEqual(['1', '2'])
    await answered
    expect(await stays).toEqual([{ MessageId: '0' }])
  })

  it('do not begin for those who gave up in the same turn', async () => {
    const { ask, started } = scene()
    const stop = new AbortController()
    const waiting = ask(3, {}, stop.signal)
    stop.abort()
    await nextTurn()
    expect(await Promise.all(waiting)).toEqual([[], [], []])
    expect(started).toEqual([])
  })

  it('look anew for whoever does not wait', async () => {
    const { ask, started } = scene()
    void ask(1)
    await nextTurn()
    const [now] = ask(1, { waitSeconds: 0 })
    await nextTurn()
    expect(asks(started).map(({ waitSeconds }) => waitSeconds)).toEqual([20, 0])
    await started[1]!.answer(0)
    expect(await now).toEqual([])
  })

  it('last no longer than SQS waits, and are begun again for those who wait longer', async () => {
    const { ask, started, clock } = scene()
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

  it('do not hold up those who want to wait for less long', async () => {
    const { ask, started, clock } = scene()
    const stop = new AbortController()
    void ask(1, {}, stop.signal)
    await nextTurn()
    stop.abort()
    const [short] = ask(1, { waitSeconds: 1 })
    await clock.advance(2000)
    expect(await short).toEqual([])
    expect(started).toHaveLength(1)
  })

  it('fail for as many as they were for', async () => {
    const { ask, started } = scene()
    const waiting = ask(12)
    await nextTurn()
    const told = Promise.allSettled(waiting.slice(0, 10))
    await started[0]!.fail(new Error('away'))
    expect((await told).map(({ status }) => status)).toEqual(
      Array.from({ length: 10 }, () => 'rejected'),
    )
    expect(await lengths(waiting.slice(10))).toEqual([undefined, undefined])
    await started[1]!.answer(2)
    expect(await lengths(waiting.slice(10))).toEqual([1, 1])
  })
})
