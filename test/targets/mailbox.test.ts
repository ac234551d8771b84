import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { mailboxHandler } from '../../src/targets/mailbox.ts'
import { encodePayload } from '../../src/letter/payload.ts'
import { immediate } from '../../src/policy/backoff.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { aFolder } from '../folders.ts'
import { aRun } from './a-run.ts'

const folder = aFolder('handler')

describe('mailboxHandler', () => {
  it('sends the payload byte for byte, with the id of the letter', async () => {
    const url = `sqlite:${join(folder, 'mail.db')}#orders`
    const dlq = await DeadLetterQueue.open('memory:', { backoff: immediate() })
    dlq.handle('charge', mailboxHandler({ url }, systemClock))
    const bytes = new Uint8Array([0, 255, 10])
    const { id } = await dlq.enqueue({ type: 'charge', payload: bytes }, new Error('ETIMEDOUT'), {
      contentType: 'application/x-order',
    })
    const resolved = new Promise((resolve) => dlq.on('resolved', resolve))
    dlq.start()
    await resolved
    const orders = await openMailbox(url)
    const [message] = await orders.receive()
    expect(message?.body).toMatchObject({ contentType: 'application/x-order', size: 3 })
    expect([...message!.body.bytes]).toEqual([...bytes])
    expect(message!.headers).toMatchObject({ 'redrive-id': id, 'redrive-attempt': '1' })
    await orders.close()
    await dlq.close()
  })

  it('omits a content type and a trace that a broker cannot transport', async () => {
    const url = `sqlite:${join(folder, 'odd.db')}#orders`
    const handle = mailboxHandler({ url }, systemClock)
    const orders = await openMailbox(url)
    for (const contentType of [
      '',
      'text/plain;\ncharset=utf-8',
      `text/plain; a=${'b'.repeat(200)}`,
    ]) {
      const payload = { ...encodePayload('odd', 'text/plain'), contentType }
      await handle(aRun('odd', { payload, traceparent: 'no\ntrace' }).run)
      const [message] = await orders.receive()
      await message!.acknowledge()
      expect(Buffer.from(message!.body.bytes).toString()).toBe('odd')
      expect(message!.body.contentType).toBe('application/octet-stream')
      expect(message!.headers).not.toHaveProperty('traceparent')
    }
    await orders.close()
    await handle.close()
  })

  it('fails the run when the mailbox cannot be opened, and retries in the next run', async () => {
    const dlq = await DeadLetterQueue.open('memory:', { backoff: immediate(), maxRetries: 2 })
    const nowhere = join(folder, 'no', 'such', 'folder', 'mail.db')
    dlq.handle('charge', mailboxHandler({ url: `sqlite:${nowhere}#orders` }, systemClock))
    await dlq.enqueue({ type: 'charge', payload: 1 }, new Error('ETIMEDOUT'))
    const runs: unknown[] = []
    dlq.on('started', ({ letter }) => runs.push(letter.retries))
    const ended = new Promise((resolve) => {
      dlq.on('exhausted', resolve)
      dlq.on('parked', resolve)
    })
    dlq.start()
    await ended
    expect(runs.length).toBeGreaterThan(0)
    expect((await dlq.stats()).states.resolved).toBe(0)
    await dlq.close()
  })
})
