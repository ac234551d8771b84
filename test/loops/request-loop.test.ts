import { describe, expect, it } from 'vitest'
import { sleep, type Clock } from '../../src/clock/clock.ts'
import { RedriveError } from '../../src/errors.ts'
import { readDeadMessage } from '../../src/loops/dead-message.ts'
import type { LoopEvent } from '../../src/loops/events.ts'
import { MainLoop, type LoopResult } from '../../src/loops/main-loop.ts'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'

interface Weather {
  /** The share of calls that fail; half of those have been executed all the same. */
  bad: number
}

const shaky = new Set(['send', 'receive', 'acknowledge', 'nack', 'extend', 'reply'])

/** A mailbox whose calls fail randomly, before or after they were executed. */
function shakyMailbox(inner: Mailbox, clock: Clock, weather: Weather): Mailbox {
  const around = <T extends object>(target: T): T =>
    new Proxy(target, {
      get: (_, key) => {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        const call = value.bind(target) as (...args: unknown[]) => unknown
        if (typeof key !== 'string' || !shaky.has(key)) return call
        return async (...args: unknown[]) => {
          const fails = clock.random() < weather.bad
          const away = new RedriveError('MAILBOX_UNAVAILABLE', `${key} has failed`)
          if (fails && clock.random() < 0.5) throw away
          const result = await call(...args)
          if (fails) throw away
          return key === 'receive' ? (result as Message[]).map(around) : result
        }
      },
    })
  return around(inner)
}

interface World {
  clock: FakeClock
  requests: Mailbox
  dlq: Mailbox
  replies: Mailbox
  weather: Weather
  events: LoopEvent[]
  loop: () => MainLoop<{ n: number }>
}

function aWorld(seed: number): World {
  const clock = fakeClock(undefined, seed)
  const weather = { bad: 0.2 }
  const replies = memoryMailbox({ name: 'replies', clock })
  const resolver = { resolve: () => shakyMailbox(replies, clock, weather) }
  const requests = memoryMailbox({ name: 'requests', clock, resolver })
  const dlq = memoryMailbox({ name: 'dlq', clock })
  const events: LoopEvent[] = []
  const loop = (): MainLoop<{ n: number }> =>
    new MainLoop({
      requests: shakyMailbox(requests, clock, weather),
      clock,
      onEvent: (event) => void events.push(event),
      concurrency: 3,
      visibilitySeconds: 30,
      waitSeconds: 900,
      dlq: {
        to: shakyMailbox(dlq, clock, weather),
        policy: new DLQPolicy({ maxDeliveryCount: 4 }),
      },
      process: async (_, { heartbeat }) => {
        const fate = clock.random()
        if (fate < 0.15) await sleep(clock, 40_000)
        if (fate > 0.8) {
          await sleep(clock, 20_000)
          heartbeat.beat()
          await sleep(clock, 20_000)
        }
        if (clock.random() < 0.4) throw new Error('by chance')
        return 'done'
      },
    })
  return { clock, requests, dlq, replies, weather, events, loop }
}

async function drained(mailbox: Mailbox): Promise<Message[]> {
  const all: Message[] = []
  for (;;) {
    const messages = await mailbox.receive({ max: 10, visibilitySeconds: 3600 })
    if (messages.length === 0) return all
    all.push(...messages)
  }
}

describe('a request with random failures', () => {
  it.each(Array.from({ length: 16 }, (_, seed) => seed))(
    'is done or dead-lettered, never lost, and has at most one dead letter: seed %d',
    async (seed) => {
      const { clock, requests, dlq, replies, weather, events, loop } = aWorld(seed)
      const sent: string[] = []
      for (let n = 0; n < 12; n++)
        sent.push(await requests.send({ n, requestId: `r-${n}` }, { replyTo: 'replies' }))
      const still = loop()
      void still.run()
      // Another worker starts and stops.
      for (let turn = 0; turn < 4; turn++) {
        const passing = loop()
        void passing.run()
        await clock.advance(45_000)
        const stopped = passing.shutdown({ timeoutMs: 8000 })
        await clock.advance(9000)
        await stopped
      }
      weather.bad = 0
      await clock.advance(24 * 3_600_000)
      expect(await requests.approximateCount()).toBe(0)

      const dead = (await drained(dlq)).map((message) => readDeadMessage(message, 'dlq'))
      const ids = dead.map(({ messageId }) => messageId)
      expect(new Set(ids).size).toBe(ids.length)
      const answers = (await drained(replies)).map((message) => ({
        to: message.headers['redrive-in-reply-to']!,
        result: message.value() as LoopResult,
      }))
      for (const id of sent) {
        const mine = answers.filter(({ to }) => to === id)
        const done = mine.some(({ result }) => result.error === undefined)
        expect([id, done || ids.includes(id)]).toEqual([id, true])
        const toldDead = mine.some(({ result }) => result.error !== undefined)
        expect([id, toldDead && !ids.includes(id)]).toEqual([id, false])
      }
      expect(events.filter(({ type }) => type === 'loop-crashed')).toEqual([])
      expect(await still.shutdown()).toBe(true)
    },
  )
})
