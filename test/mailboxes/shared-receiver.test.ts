import * as fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import type { ReceiveRequest, Delivery } from '../../src/mailbox.ts'
import { SharedReceiver, type TakenMessages } from '../../src/mailboxes/shared-receiver.ts'
import { fakeClock } from '../../src/testing/index.ts'

const delivery = (id: string): Delivery => ({
  id,
  bytes: new Uint8Array(),
  contentType: 'text/plain',
  headers: {},
  receipt: id,
  deliveries: 1,
  failures: 0,
  enqueuedMs: 0,
  firstReceivedMs: 0,
})

/**
 * A broker that answers a poll on demand, with its state at that time or at the time of the
 * request.
 */
class Broker {
  readonly #early: boolean
  readonly waiting: string[] = []
  readonly released: string[] = []
  readonly polls: { slots: number; answer: () => void }[] = []
  /** Like a driver with a limit in bytes. */
  most = Infinity

  constructor(early = false) {
    this.#early = early
  }

  take(slots: number): Promise<TakenMessages> {
    const found = (): Delivery[] => this.waiting.splice(0, Math.min(slots, this.most)).map(delivery)
    const early = this.#early ? found() : undefined
    return new Promise((resolve) => {
      const answer = (): void => resolve({ deliveries: early ?? found() })
      this.polls.push({ slots, answer })
    })
  }

  /** Answers the poll at this position in the order of their start. */
  async answer(at = 0): Promise<void> {
    this.polls.splice(at, 1)[0]?.answer()
    await settled()
  }
}

/** Runs everything that waits for no answer and no time. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('SharedReceiver', () => {
  let broker: Broker
  let line: SharedReceiver
  let clock: ReturnType<typeof fakeClock>

  const begin = (early = false): void => {
    const fresh = new Broker(early)
    broker = fresh
    clock = fakeClock()
    line = new SharedReceiver({
      clock,
      take: (slots) => fresh.take(slots.length),
      release: async (receipts) => {
        fresh.released.push(...receipts)
        fresh.waiting.unshift(...receipts)
      },
      pollMs: () => 1000,
    })
  }
  beforeEach(() => begin())

  const ask = (signal = new AbortController().signal): ReceiveRequest => ({
    max: 1,
    visibilityMs: 1000,
    waitMs: 10_000,
    signal,
  })
  const receive = async (signal?: AbortSignal): Promise<string[]> =>
    (await line.receive(ask(signal))).map(({ id }) => id)

  it('polls once for calls of the same tick', async () => {
    const all = [receive(), receive()]
    await settled()
    broker.waiting.push('a', 'b')
    expect(broker.polls.map(({ slots }) => slots)).toEqual([2])
    await broker.answer()
    expect(await Promise.all(all)).toEqual([['a'], ['b']])
  })

  it('starts a second poll for calls during a poll, and no third', async () => {
    const all = []
    for (let n = 0; n < 4; n++) {
      all.push(receive())
      await settled()
    }
    expect(broker.polls.map(({ slots }) => slots)).toEqual([1, 1])
    broker.waiting.push('a', 'b', 'c', 'd')
    await broker.answer(1)
    expect(broker.polls.map(({ slots }) => slots)).toEqual([1, 2])
    await broker.answer()
    await broker.answer()
    expect(await Promise.all(all)).toEqual([['b'], ['a'], ['c'], ['d']])
  })

  it('polls again after a notification for waiters that got nothing', async () => {
    const first = receive()
    await settled()
    const second = receive()
    await settled()
    await broker.answer()
    await broker.answer()
    broker.waiting.push('a', 'b')
    expect(broker.polls).toEqual([])
    line.notify()
    await settled()
    expect(broker.polls.map(({ slots }) => slots)).toEqual([2])
    await broker.answer()
    expect(await Promise.all([first, second])).toEqual([['a'], ['b']])
  })

  it('does not overtake messages that are being released', async () => {
    const stop = new AbortController()
    broker.waiting.push('a', 'b')
    const gone = receive(stop.signal)
    await settled()
    stop.abort()
    const late = receive()
    await settled()
    expect(broker.polls).toHaveLength(1)
    await broker.answer()
    await broker.answer()
    expect([await gone, await late]).toEqual([[], ['a']])
    expect(broker.released).toEqual(['a'])
  })

  it('polls again for waiters that polled during a release', async () => {
    begin(true)
    const stop = new AbortController()
    broker.waiting.push('a')
    const all = [receive(), receive()]
    await settled()
    const gone = receive(stop.signal)
    broker.waiting.push('b')
    await settled()
    stop.abort()
    await broker.answer()
    expect(broker.polls).toHaveLength(2)
    await broker.answer()
    expect(broker.waiting).toEqual(['b'])
    await broker.answer()
    await broker.answer()
    expect([await gone, ...(await Promise.all(all))]).toEqual([[], ['a'], ['b']])
  })

  it('does not report an empty mailbox while a poll returns less than there is', async () => {
    const impatient = async (): Promise<string[]> =>
      (await line.receive({ ...ask(), waitMs: 0 })).map(({ id }) => id)
    broker.most = 2
    broker.waiting.push('a', 'b', 'c')
    const all = [impatient(), impatient(), impatient(), impatient()]
    await settled()
    while (broker.polls.length > 0) await broker.answer()
    expect(await Promise.all(all)).toEqual([['a'], ['b'], ['c'], []])
  })

  it('is idle once nobody waits and no poll is in flight', async () => {
    broker.waiting.push('a', 'b')
    const all = [receive()]
    await settled()
    all.push(receive())
    await settled()
    let idle = false
    const waiting = line.idle().then(() => (idle = true))
    await broker.answer()
    expect(idle).toBe(false)
    await broker.answer()
    await waiting
    expect((await Promise.all(all)).flat()).toEqual(['a', 'b'])
  })

  it('serves every waiter that could have a message, and loses none', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('receive' as const) }),
      fc.record({ do: fc.constant('send' as const) }),
      fc.record({ do: fc.constant('leave' as const), at: fc.nat(5) }),
      fc.record({ do: fc.constant('answer' as const), at: fc.nat(1) }),
      fc.record({ do: fc.constant('pass' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), async (steps, early) => {
        begin(early)
        const stops: AbortController[] = []
        const got: string[] = []
        let sent = 0
        let open = 0
        for (const one of steps) {
          if (one.do === 'send') {
            broker.waiting.push(`m${sent++}`)
            line.notify()
          } else if (one.do === 'receive') {
            const stop = new AbortController()
            stops.push(stop)
            open += 1
            void receive(stop.signal).then((found) => (got.push(...found), (open -= 1)))
          } else if (one.do === 'leave') stops[one.at]?.abort()
          else if (one.do === 'answer')
            await broker.answer(one.at % Math.max(1, broker.polls.length))
          else await settled()
        }
        await settled()
        while (broker.polls.length > 0) await broker.answer()
        expect(open === 0 || broker.waiting.length === 0).toBe(true)
        expect([...got, ...broker.waiting].toSorted()).toEqual(
          Array.from({ length: sent }, (_, n) => `m${n}`).toSorted(),
        )
        for (const stop of stops) stop.abort()
        await settled()
        while (broker.polls.length > 0) await broker.answer()
        await line.idle()
      }),
      { numRuns: 500 },
    )
  })
})
