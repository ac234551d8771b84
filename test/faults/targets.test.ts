import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { mailboxHandler } from '../../src/targets/mailbox.ts'
import { fixed } from '../../src/policy/backoff.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { DeadLetterQueue } from '../../src/queue.ts'
import { ask } from '../mailboxes/redis/redis-bench.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privateRedis } from '../servers/private.ts'
import { mailboxKinds } from './mailbox-grounds.ts'
import { outcomeOf } from './outcome.ts'
import { createProxy } from './proxy.ts'

const { postgres, redis, rabbitmq, nats, sqs, kafka } = mailboxKinds

describe('a mailbox that letters are sent to', { concurrent: true, timeout: 60_000 }, () => {
  for (const { kind, missing, begin } of [postgres, redis, rabbitmq, nats, sqs, kafka])
    it.skipIf(missing)(
      `of ${kind} keeps its letters waiting while it is away, and gets them once it is back`,
      async () => {
        const ground = await begin()
        const url = ground.url('target')
        const proxy = await createProxy(url)
        await proxy.set('refuse')
        try {
          await delivered(proxy.through(url), url, () => proxy.set('pass'))
        } finally {
          proxy.close()
          await ground.clear()
        }
      },
    )
})

describe('a mailbox whose place was removed', { concurrent: true, timeout: 60_000 }, () => {
  for (const { kind, missing, begin } of [postgres, redis, rabbitmq, nats, kafka])
    it.skipIf(missing)(`from ${kind} refuses what is sent to it, or has it`, async () => {
      const ground = await begin()
      const url = ground.url('target')
      const mailbox = await openMailbox(url)
      await mailbox.send('before')
      await ground.clear()
      const { error } = await outcomeOf(mailbox.send('after'))
      const other = await openMailbox(url)
      try {
        if (error) expect(error).toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
        expect(await other.approximateCount()).toBe(error ? 0 : 1)
      } finally {
        await Promise.all([mailbox.close(), other.close()])
        await ground.clear()
      }
    })
})

describe.skipIf(lacksPrivate.redis())('a mailbox that wants a password', () => {
  let server: PrivateServer
  beforeAll(async () => {
    server = await privateRedis()
  }, 60_000)
  afterAll(() => server?.remove())

  const setPassword = async (password: string): Promise<void> => {
    const rule = ['on', 'resetpass', `>${password}`, '~*', '&*', '+@all']
    await ask(server.url, 'ACL', 'SETUSER', 'app', ...rule)
    await ask(server.url, 'CLIENT', 'KILL', 'USER', 'app')
  }

  it('keeps letters that come with another one, tells none of them, and gets them once it is right', async () => {
    await setPassword('second-secret')
    const url = `${server.url}#target`
    const guarded = url.replace('//', '//app:first-secret@')
    const told = await delivered(guarded, url, () => setPassword('first-secret'))
    expect(told).toMatch(/user and password/)
    expect(told).not.toContain('secret')
  })
})

/** Has a letter sent to a mailbox that cannot be reached at first. Gives what the letter says of that. */
async function delivered(
  target: string,
  direct: string,
  mend: () => Promise<void>,
): Promise<string> {
  const dlq = await DeadLetterQueue.open('memory:', { backoff: fixed(100), maxRetries: 1000 })
  try {
    dlq.handle('orders', mailboxHandler({ url: target }, systemClock))
    const { id } = await dlq.enqueue({ type: 'orders', payload: 'one' }, new Error('ETIMEDOUT'))
    const failed = new Promise((resolve) => {
      for (const event of ['rescheduled', 'released', 'parked'] as const) dlq.on(event, resolve)
    })
    const resolved = new Promise((resolve) => dlq.on('resolved', resolve))
    dlq.start()
    await failed
    const { failure, state } = (await dlq.get(id))!
    expect(failure).toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    expect(['pending', 'retrying', 'parked']).toContain(state)
    await mend()
    // One that is not let in waits for a person.
    if (state === 'parked') await dlq.retry(id)
    await resolved
    const mailbox = await openMailbox(direct)
    const values = (await mailbox.receive({ max: 10, waitSeconds: 20 })).map((one) => one.value())
    await mailbox.close()
    expect(new Set(values)).toEqual(new Set(['one']))
    return failure.message
  } finally {
    await dlq.close()
  }
}
