import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { mailboxHandler } from '../../src/targets/mailbox.ts'
import { fixed } from '../../src/policy/backoff.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { ask } from '../mailboxes/redis/redis-bench.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privateRedis } from '../servers/private.ts'
import { mailboxKinds } from './mailbox-kinds.ts'
import { outcomeOf } from './outcome.ts'
import { createProxy } from './proxy.ts'

const { postgres, redis, rabbitmq, nats, sqs, kafka } = mailboxKinds

describe('a mailbox as the target of letters', { concurrent: true, timeout: 60_000 }, () => {
  for (const { kind, missing, begin } of [postgres, redis, rabbitmq, nats, sqs, kafka])
    it.skipIf(missing)(`on ${kind} receives its letters once it is reachable again`, async () => {
      const environment = await begin()
      const url = environment.url('target')
      const proxy = await createProxy(url)
      await proxy.set('refuse')
      try {
        await deliverAfterOutage(proxy.through(url), url, () => proxy.set('pass'))
      } finally {
        proxy.close()
        await environment.clear()
      }
    })
})

describe('a mailbox whose storage was removed', { concurrent: true, timeout: 60_000 }, () => {
  for (const { kind, missing, begin } of [postgres, redis, rabbitmq, nats, kafka])
    it.skipIf(missing)(`from ${kind} refuses a send, or stores the message`, async () => {
      const environment = await begin()
      const url = environment.url('target')
      const mailbox = await openMailbox(url)
      await mailbox.send('before')
      await environment.clear()
      const { error } = await outcomeOf(mailbox.send('after'))
      const other = await openMailbox(url)
      try {
        if (error) expect(error).toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
        expect(await other.approximateCount()).toBe(error ? 0 : 1)
      } finally {
        await Promise.all([mailbox.close(), other.close()])
        await environment.clear()
      }
    })
})

describe.skipIf(lacksPrivate.redis())('a mailbox that requires a password', () => {
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

  it('receives its letters once the password is right, and no message contains a password', async () => {
    await setPassword('second-secret')
    const url = `${server.url}#target`
    const urlWithPassword = url.replace('//', '//app:first-secret@')
    const message = await deliverAfterOutage(urlWithPassword, url, () =>
      setPassword('first-secret'),
    )
    expect(message).toMatch(/user and password/)
    expect(message).not.toContain('secret')
  })
})

/**
 * Sends a letter to a mailbox that is unreachable at first. Returns the failure message of the
 * letter.
 */
async function deliverAfterOutage(
  target: string,
  direct: string,
  repair: () => Promise<void>,
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
    await repair()
    // A letter that was refused for its password waits for a person.
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
