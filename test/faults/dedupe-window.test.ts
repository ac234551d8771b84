import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MainLoop } from '../../src/loops/main-loop.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { mailboxKinds, type MailboxEnvironment } from './mailbox-kinds.ts'

const { missing, begin } = mailboxKinds.nats

describe.skipIf(missing)('a message sent again after the deduplication window of NATS', () => {
  let environment: MailboxEnvironment
  let mailbox: Mailbox
  let dlq: DeadLetterQueue
  beforeEach(async () => {
    environment = await begin()
    mailbox = await openMailbox(environment.url('orders').replace('#', '&dedupeSeconds=1#'))
    dlq = await DeadLetterQueue.open('memory:')
  })
  afterEach(async () => {
    await dlq.close()
    await mailbox.close()
    await environment.clear()
  })

  const send = (): Promise<string> => mailbox.send({ order: 1 }, { id: 'order-1' })

  /** Sends until the broker accepts the id again, after its deduplication window. */
  const sendAfterWindow = async (): Promise<void> => {
    await expect.poll(async () => (await send(), mailbox.approximateCount())).toBe(1)
  }

  /** One iteration of a loop in which the message fails permanently. */
  const fail = (): Promise<void> =>
    new MainLoop({
      requests: mailbox,
      process: () => {
        throw new Error('no such customer')
      },
      dlq: { to: dlq.deadLetters(), policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    }).run({ maxIterations: 1 })

  it('counts in the open letter of its message, and creates a new letter once that is resolved', async () => {
    await send()
    await send()
    expect(await mailbox.approximateCount()).toBe(1)
    await fail()
    await sendAfterWindow()
    await fail()
    const [letter, ...more] = (await dlq.find({})).items
    expect(more).toEqual([])
    expect(letter).toMatchObject({ occurrences: 2 })
    await dlq.resolve(letter!.id)
    await sendAfterWindow()
    await fail()
    const state = ['pending', 'parked', 'resolved', 'exhausted'] as const
    const states = (await dlq.find({ state: [...state] })).items.map((one) => one.state)
    expect(states.filter((one) => one === 'resolved')).toHaveLength(1)
    expect(states).toHaveLength(2)
  })
})
