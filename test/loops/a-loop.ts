import type { LoopEvent } from '../../src/loops/events.ts'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'

type EventOf<T extends LoopEvent['type']> = Extract<LoopEvent, { type: T }>

export interface LoopBench {
  clock: FakeClock
  requests: Mailbox
  replies: Mailbox
  dlq: Mailbox
  /** All events in order. */
  events: LoopEvent[]
  eventsOf: <T extends LoopEvent['type']>(type: T) => EventOf<T>[]
  onEvent: (event: LoopEvent) => void
  /** The options of a loop on the requests. */
  parts: { requests: Mailbox; clock: FakeClock; onEvent: (event: LoopEvent) => void }
  /** Runs everything that can run without time passing. */
  settle: () => Promise<void>
  /** The values of all messages that are visible in a mailbox. */
  take: (mailbox: Mailbox) => Promise<unknown[]>
}

/** Mailboxes in memory that resolve each other by name, and a clock that the test moves. */
export function aLoop(): LoopBench {
  const clock = fakeClock()
  const known = new Map<string, Mailbox>()
  const resolver = { resolve: (name: string) => known.get(name) }
  const made = (name: string): Mailbox => {
    const mailbox = memoryMailbox({ name, clock, resolver })
    known.set(name, mailbox)
    return mailbox
  }
  const events: LoopEvent[] = []
  const onEvent = (event: LoopEvent): void => void events.push(event)
  const requests = made('requests')
  return {
    clock,
    requests,
    parts: { requests, clock, onEvent },
    replies: made('replies'),
    dlq: made('requests-dlq'),
    events,
    eventsOf: <T extends LoopEvent['type']>(type: T) =>
      events.filter((event): event is EventOf<T> => event.type === type),
    onEvent,
    settle: () => clock.advance(0),
    take: async (mailbox) => {
      const found: unknown[] = []
      for (;;) {
        const messages = await mailbox.receive({ max: 10 })
        if (messages.length === 0) return found
        for (const message of messages) {
          found.push(message.value())
          await message.acknowledge()
        }
      }
    },
  }
}

/** The calls that can be made to fail. */
type Fault = 'receive' | 'send' | 'approximateCount' | 'acknowledge' | 'nack' | 'extend' | 'reply'

export interface Faulty {
  mailbox: Mailbox
  /** Each call fails with this error until it is removed. */
  faults: Partial<Record<Fault, Error>>
  /** Calls in order, including failed ones. */
  calls: Fault[]
}

/** A real mailbox whose calls can be made to fail. */
export function faulty(inner: Mailbox): Faulty {
  const faults: Faulty['faults'] = {}
  const calls: Fault[] = []
  const names: readonly string[] = [
    'receive',
    'send',
    'approximateCount',
    'acknowledge',
    'nack',
    'extend',
    'reply',
  ]
  const around = <T extends object>(target: T): T =>
    new Proxy(target, {
      get: (_, key) => {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        const call = value.bind(target) as (...args: unknown[]) => unknown
        if (typeof key !== 'string' || !names.includes(key)) return call
        return async (...args: unknown[]) => {
          calls.push(key as Fault)
          const fault = faults[key as Fault]
          if (fault) throw fault
          const result = await call(...args)
          return key === 'receive' ? (result as Message[]).map(around) : result
        }
      },
    })
  return { mailbox: around(inner), faults, calls }
}
