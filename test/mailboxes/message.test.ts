import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import type { MailboxDriver, Message } from '../../src/mailbox.ts'
import { mailbox } from '../../src/mailboxes/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { aDelivery, aDriver } from './a-driver.ts'

const clock = fakeClock()

async function aMessage(
  driver: Partial<MailboxDriver> = {},
  visibilitySeconds = 30,
): Promise<Message> {
  const [message] = await mailbox(aDriver(driver), { clock }).receive({ visibilitySeconds })
  return message!
}

describe('Message', () => {
  it('is not finalised by an unanswered call, and can be settled again', async () => {
    let calls = 0
    const flaky = async (): Promise<boolean> => {
      calls += 1
      if (calls === 1) throw new RedriveError('MAILBOX_UNAVAILABLE', 'the broker is unreachable')
      return true
    }
    const message = await aMessage({ acknowledge: flaky })
    await expect(message.acknowledge()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    expect(message.finalized).toBe(false)
    await message.acknowledge()
    expect(message.finalized).toBe(true)
  })

  it('sends one call after the other to the broker, and none once it is finalised', async () => {
    const calls: string[] = []
    let answer: (holds: boolean) => void = () => {}
    const message = await aMessage({
      extend: () => {
        calls.push('extend')
        return new Promise((resolve) => (answer = resolve))
      },
      acknowledge: async () => calls.push('acknowledge') > 0,
      nack: async () => calls.push('nack') > 0,
    })
    const extending = message.extend(60)
    const rest = Promise.allSettled([message.acknowledge(), message.nack(), message.acknowledge()])
    expect(calls).toEqual(['extend'])
    answer(true)
    await extending
    expect((await rest).map((one) => one.status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(calls).toEqual(['extend', 'acknowledge'])
  })

  it('requests the remaining time if an extension would be shorter', async () => {
    const requestedMs: number[] = []
    const extend = async (_: string, ms: number): Promise<boolean> => requestedMs.push(ms) > 0
    const message = await aMessage({ extend })
    await clock.advance(10_000)
    await message.extend(5)
    await message.extend(30)
    await message.extend(25)
    expect(requestedMs).toEqual([20_000, 30_000, 30_000])
    expect(message.visibleAt).toBe(new Date(clock.now() + 30_000).toISOString())
  })

  it('requests at most twelve hours, even if the wall clock went back', async () => {
    const requestedMs: number[] = []
    const extend = async (_: string, ms: number): Promise<boolean> => requestedMs.push(ms) > 0
    const message = await aMessage({ extend }, 43_200)
    clock.set(clock.now() - 3_600_000)
    await message.extend(5)
    expect(requestedMs).toEqual([43_200_000])
  })

  it('reports a stale receipt, and stays unchanged', async () => {
    const no = async (): Promise<boolean> => false
    const message = await aMessage({ acknowledge: no, nack: no, extend: no })
    const stale = { code: 'RECEIPT_EXPIRED' }
    const before = message.visibleAt
    await expect(message.extend(600)).rejects.toMatchObject(stale)
    await expect(message.acknowledge()).rejects.toMatchObject(stale)
    await expect(message.nack()).rejects.toMatchObject(stale)
    expect(message.visibleAt).toBe(before)
    expect(message.finalized).toBe(false)
  })

  it('cannot reply without a resolver', async () => {
    const receive = async () => [aDelivery({ replyTo: 'answers' })]
    const message = await aMessage({ receive })
    await expect(message.reply(1)).rejects.toMatchObject({
      code: 'REPLY_UNAVAILABLE',
      message: expect.stringContaining('answers'),
    })
  })

  it('replies to a message whose id has a line break', async () => {
    const answers = memoryMailbox({ name: 'answers' })
    const receive = async () => [aDelivery({ id: 'a\nb', replyTo: 'answers' })]
    const resolver = { resolve: () => answers }
    const [message] = await mailbox(aDriver({ receive }), { clock, resolver }).receive()
    await message!.reply(1)
    const [reply] = await answers.receive()
    expect(reply!.headers).toEqual({ 'redrive-in-reply-to': 'a%0Ab' })
  })

  it('names the content type of a body that it cannot decode, and none of its bytes', async () => {
    const receive = async () => [aDelivery({ bytes: Buffer.from('hunter2') })]
    const message = await aMessage({ receive })
    expect(() => message.value()).toThrow(
      expect.objectContaining({
        code: 'UNDECODABLE',
        message: expect.stringMatching(/^(?!.*hunter2).*application\/json/),
      }),
    )
  })
})
