import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Mailbox, Message } from '../../../src/mailbox.ts'
import { kafkaMailbox } from '../../../src/mailboxes/kafka/kafka.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privateKafka } from '../../servers/private.ts'

describe.skipIf(lacksPrivate.kafka())(
  'kafkaMailbox without its broker',
  { timeout: 120_000 },
  () => {
    let server: PrivateServer
    let mailbox: Mailbox

    beforeAll(async () => {
      server = await privateKafka()
      mailbox = kafkaMailbox({ name: 'main', url: server.url, sessionMs: 2000, timeoutMs: 3000 })
      await mailbox.open()
    }, 120_000)

    afterAll(async () => {
      await mailbox.close()
      await server.remove()
    }, 120_000)

    const away = { code: 'MAILBOX_UNAVAILABLE' }

    /** Retries as a worker does. */
    const receive = async (): Promise<Message> => {
      for (;;) {
        const [message] = await mailbox.receive({ waitSeconds: 5 }).catch(() => [])
        if (message) return message
      }
    }
    const send = (body: string): Promise<string> => mailbox.send(body).catch(() => send(body))

    it('rejects while the broker is down and recovers when it is back', async () => {
      await mailbox.send('kept')
      await mailbox.send('held')
      await (await receive()).acknowledge()
      const held = await receive()
      expect(held.value()).toBe('held')
      const receiving = mailbox.receive({ waitSeconds: 60 })
      const rejected = expect(receiving).rejects.toMatchObject(away)
      await server.kill9()
      await rejected
      await expect(mailbox.send('lost')).rejects.toMatchObject(away)
      await expect(mailbox.receive({ waitSeconds: 60 })).rejects.toMatchObject(away)
      await expect(mailbox.approximateCount()).rejects.toMatchObject(away)
      await expect(held.nack()).rejects.toMatchObject(away)
      expect((await mailbox.health()).ok).toBe(false)
      await server.start()
      await send('after')
      const after = await receive()
      expect(['held', 'after']).toContain(after.value())
    })

    it('rejects in time while the broker does not answer', async () => {
      await mailbox.purge()
      server.pause()
      try {
        await expect(mailbox.send('unanswered')).rejects.toMatchObject(away)
        await expect(mailbox.receive({ waitSeconds: 60 })).rejects.toMatchObject(away)
      } finally {
        server.resume()
      }
      await send('answered')
      expect(['answered', 'unanswered']).toContain((await receive()).value())
    })
  },
)
