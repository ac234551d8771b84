import { ChangeMessageVisibilityCommand, SQSClient } from '@aws-sdk/client-sqs'
import { startFauxqs, type FauxqsServer } from 'fauxqs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sqsTap } from '../../src/taps/sqs.ts'
import type { ForeignLetter, Keep, Tap } from '../../src/taps/tap.ts'
import { credentials } from '../mailboxes/sqs/on-fauxqs.ts'
import { inbox } from '../taps/inbox.ts'

const unavailable = { code: 'MAILBOX_UNAVAILABLE' }

describe('a tap on a dead letter queue of SQS', () => {
  let server: FauxqsServer
  let client: SQSClient
  const taps: Tap[] = []

  beforeEach(async () => {
    server = await startFauxqs({ port: 0, logger: false })
    const endpoint = `http://127.0.0.1:${server.port}`
    client = new SQSClient({ endpoint, region: 'us-east-1', credentials })
    for (const queue of ['orders', 'dead']) server.createQueue(queue)
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
    client.destroy()
    await server.stop()
  })

  const startTap = async (keep: Keep): Promise<Tap> => {
    const tap = sqsTap({
      url: `sqs://127.0.0.1:${server.port}/dead?region=us-east-1`,
      connection: { credentials },
      sourceQueue: 'orders',
      keep,
    })
    taps.push(tap)
    await tap.start()
    return tap
  }

  const countDead = (): number => {
    const { ready, inflight } = server.inspectQueue('dead')!.messages
    return ready.length + inflight.length
  }

  /** Ends the visibility timeout, as if storing took longer. */
  const expireReceipt = async (): Promise<void> => {
    const { url: QueueUrl, messages } = server.inspectQueue('dead')!
    const ReceiptHandle = messages.inflight[0]!.receiptHandle
    const request = { QueueUrl, ReceiptHandle, VisibilityTimeout: 0 }
    await client.send(new ChangeMessageVisibilityCommand(request))
  }

  it('deletes a message only after it is stored, even if a second tap received it meanwhile', async () => {
    const slow = inbox<string>()
    const gate = inbox<void>()
    await startTap(async ({ messageId }) => {
      slow.put(messageId)
      await gate.next()
    })
    server.sendMessage('dead', 'poison')
    const id = await slow.next()
    expect(countDead()).toBe(1)
    await expireReceipt()
    const fast = inbox<string>()
    await startTap(async ({ messageId }) => {
      expect(countDead()).toBe(1)
      fast.put(messageId)
    })
    expect(await fast.next()).toBe(id)
    await expect.poll(countDead).toBe(0)
    gate.put()
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
    expect(countDead()).toBe(0)
  })

  it('fails to return a letter to a deleted queue, and returns it once the queue exists again', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await startTap(async (letter) => kept.put(letter))
    server.sendMessage('dead', 'poison')
    const letter = await kept.next()
    server.deleteQueue('orders')
    await expect(tap.returnToSource(letter, 1)).rejects.toMatchObject(unavailable)
    server.createQueue('orders')
    await tap.returnToSource(letter, 1)
    expect(server.inspectQueue('orders')!.messages.ready).toHaveLength(1)
  })

  it('refuses to return a letter that was edited to exceed the size limit of SQS', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await startTap(async (letter) => kept.put(letter))
    server.sendMessage('dead', 'poison')
    const body = Buffer.alloc(2 * 1024 ** 2, 'x')
    const back = tap.returnToSource({ ...(await kept.next()), body }, 1)
    await expect(back).rejects.toMatchObject({ code: 'TOO_LARGE' })
    expect(server.inspectQueue('orders')!.messages.ready).toHaveLength(0)
  })
})
