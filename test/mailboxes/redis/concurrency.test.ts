import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox, Message } from '../../../src/mailbox.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { chance } from '../../crash/chance.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { ask, expectSound, openedMailboxes, single } from './redis-bench.ts'

describe.skipIf(single.missing !== undefined)('concurrent receivers', () => {
  const mailboxes = openedMailboxes()
  let place: Place
  let handles: Mailbox[]

  beforeEach(async () => {
    place = redisPlace(single.url)
    // With a fake clock, waiting receivers never poll by themselves: only notifications wake them.
    const open = (_: unknown, n: number): Promise<Mailbox> =>
      mailboxes.open({ url: single.url, prefix: place.name, clock: fakeClock(0, n) })
    handles = await Promise.all(Array.from({ length: 6 }, open))
  })

  afterEach(async () => {
    await mailboxes.close()
    await place.clear()
  })

  it('receive each message once', async () => {
    const ids = await Promise.all(Array.from({ length: 600 }, (_, n) => handles[n % 6]!.send(n)))
    const received: string[] = []
    const drain = async (mailbox: Mailbox, max: number): Promise<void> => {
      for (;;) {
        const messages = await mailbox.receive({ max, visibilitySeconds: 600 })
        if (messages.length === 0) return
        received.push(...messages.map(({ id }) => id))
        await Promise.all(messages.map((message) => message.acknowledge()))
      }
    }
    await Promise.all([...handles, ...handles].map((mailbox, n) => drain(mailbox, 1 + (n % 10))))
    expect(received.toSorted()).toEqual(ids.toSorted())
    expect(await handles[0]!.approximateCount()).toBe(0)
  })

  /** Starts receivers and waits until all are subscribed and their first polls have returned. */
  const startReceivers = async (count: number): Promise<Promise<Message[]>[]> => {
    const waiting = handles.flatMap((mailbox) =>
      Array.from({ length: count }, () => mailbox.receive({ waitSeconds: 60 })),
    )
    const channel = `{${place.name}/m}:wake`
    for (;;) {
      const answer = (await ask(single.url, 'PUBSUB', 'NUMSUB', channel)) as [string, number]
      if (answer[1] === handles.length) break
    }
    // Uses the same connection after the polls, so the polls are answered before it.
    for (const mailbox of handles) await mailbox.approximateCount()
    return waiting
  }

  it('wait, and each message wakes one receiver', async () => {
    for (let round = 0; round < 3; round++) {
      const waiting = await startReceivers(5)
      const ids = await Promise.all(waiting.map((_, n) => handles[n % 6]!.send(n)))
      const received = (await Promise.all(waiting)).flat().map(({ id }) => id)
      expect(received.toSorted()).toEqual(ids.toSorted())
    }
  })

  it('wait, and are woken by returned messages', async () => {
    const [first] = handles
    for (let round = 0; round < 3; round++) {
      for (const _ of handles) await first!.send('x')
      const taken = await first!.receive({ max: handles.length })
      const waiting = await startReceivers(1)
      for (const message of taken) await message.nack()
      expect((await Promise.all(waiting)).flat()).toHaveLength(handles.length)
      await first!.purge()
    }
  })

  it.each([1, 2, 3])('leave every message in exactly one place, with seed %i', async (seed) => {
    const drawn = chance(seed)
    const sent = new Set<string>()
    const acknowledged: string[] = []
    const held: Message[] = []
    const refused = (error: { code?: string }): void => {
      expect(error.code).toBe('RECEIPT_EXPIRED')
    }
    const act = async (mailbox: Mailbox): Promise<void> => {
      const dice = drawn.next()
      const message = held.splice(Math.floor(drawn.next() * held.length), 1)[0]
      if (dice < 0.3 || !message) {
        const delaySeconds = drawn.next() < 0.2 ? 0.01 : 0
        sent.add(await mailbox.send(dice, { delaySeconds }))
        held.push(...(await mailbox.receive({ max: 3, visibilitySeconds: dice < 0.1 ? 0 : 60 })))
      } else if (dice < 0.6)
        await message.acknowledge().then(() => acknowledged.push(message.id), refused)
      else if (dice < 0.8)
        await message.nack({ delaySeconds: drawn.next() < 0.3 ? 0.01 : 0 }).catch(refused)
      else if (dice < 0.9) await message.extend(90).catch(refused)
      else await mailbox.browse!({ limit: 5 })
    }
    await Promise.all(
      [...handles, ...handles].map(async (mailbox) => {
        for (let n = 0; n < 40; n++) await act(mailbox)
      }),
    )
    expect(new Set(acknowledged).size).toBe(acknowledged.length)
    const left = await expectSound(single.url, `{${place.name}/m}`)
    expect(left).toBe(sent.size - acknowledged.length)
  })
})
