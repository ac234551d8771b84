import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox, Message } from '../../../src/mailbox.ts'
import { rabbitmqMailbox } from '../../../src/mailboxes/rabbitmq/rabbitmq.ts'
import { createProxy, type Proxy } from '../../faults/proxy.ts'
import { spawn } from '../../processes.ts'
import { backend, freshName } from '../../servers/servers.ts'
import { removeMailboxes } from './place.ts'

const { url, missing } = backend('rabbitmq')
const timeoutMs = 500

describe.skipIf(missing)('a mailbox in RabbitMQ with faults', { timeout: 60_000 }, () => {
  let proxy: Proxy
  let mailbox: Mailbox

  beforeEach(async () => {
    proxy = await createProxy(url)
    mailbox = rabbitmqMailbox({ url: proxy.through(url), name: freshName(), timeoutMs })
    await mailbox.open()
  })

  afterEach(async () => {
    await proxy.set('pass')
    await mailbox.close()
    await removeMailboxes(url, [mailbox.name])
    proxy.close()
  })

  it('redelivers open deliveries after the connection broke, and rejects the old receipts', async () => {
    const numbers = Array.from({ length: 100 }, (_, n) => n)
    await Promise.all(numbers.map((n) => mailbox.send(n)))
    const held = await take(mailbox, 100)
    const waiting = mailbox.receive({ waitSeconds: 60 })
    const rejected = expect(waiting).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await breakOnce(proxy)
    await rejected
    const again = await take(mailbox, 100)
    expect(numbersOf(again)).toEqual(numbers)
    expect(again.every(({ deliveries }) => deliveries === 2)).toBe(true)
    for (const old of held.slice(0, 3)) {
      await expect(old.acknowledge()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
      await expect(old.nack()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
      await expect(old.extend(60)).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    }
    await Promise.all(again.map((message) => message.acknowledge()))
    expect(await mailbox.receive()).toEqual([])
  })

  it('rejects in time while the server is unreachable, and continues afterwards', async () => {
    await mailbox.send('before')
    const [held] = await take(mailbox, 1)
    await proxy.set('refuse')
    await proxy.set('reset')
    await proxy.set('refuse')
    const unavailable = { code: 'MAILBOX_UNAVAILABLE' }
    await expect(mailbox.send('meanwhile')).rejects.toMatchObject(unavailable)
    await expect(mailbox.receive({ waitSeconds: 60 })).rejects.toMatchObject(unavailable)
    await expect(mailbox.approximateCount()).rejects.toMatchObject(unavailable)
    await expect(mailbox.purge()).rejects.toMatchObject(unavailable)
    await expect(held!.acknowledge()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    expect(await mailbox.health()).toMatchObject({ ok: false })
    await proxy.set('pass')
    await eventually(() => mailbox.send('after'))
    expect((await take(mailbox, 2)).map((message) => message.value())).toEqual(['before', 'after'])
  })

  it('does not hang on a silent server', async () => {
    await mailbox.send('held')
    const [held] = await take(mailbox, 1)
    await proxy.set('blackhole')
    const unavailable = { code: 'MAILBOX_UNAVAILABLE' }
    // The connection may be abandoned by then, and the receipt with it.
    const refused = {
      code: expect.stringMatching(/^(MAILBOX_UNAVAILABLE|RECEIPT_EXPIRED)$/) as string,
    }
    await expect(mailbox.send('unknown')).rejects.toMatchObject(unavailable)
    await expect(held!.nack()).rejects.toMatchObject(refused)
    await expect(held!.acknowledge()).rejects.toMatchObject(refused)
    await expect(mailbox.receive()).rejects.toMatchObject(unavailable)
    const stop = new AbortController()
    const receiving = mailbox.receive({ waitSeconds: 60, signal: stop.signal })
    stop.abort()
    expect(await receiving).toEqual([])
    await proxy.set('reset')
    await proxy.set('pass')
    await eventually(() => mailbox.send('after the fault'))
    const values = new Set<unknown>()
    while (!values.has('after the fault'))
      for (const one of await take(mailbox, 1)) values.add(one.value())
    expect(values).toContain('held')
  })

  it('closes while the server is silent', async () => {
    const receiving = mailbox.receive({ waitSeconds: 60 })
    await proxy.set('blackhole')
    await mailbox.close()
    expect(await receiving).toEqual([])
  })

  it('closes soon while the server is silent, however long its time limit is', async () => {
    const patient = rabbitmqMailbox({
      url: proxy.through(url),
      name: mailbox.name,
      timeoutMs: 600_000,
    })
    await patient.open()
    await patient.send('held')
    const [held] = await take(patient, 1)
    const receiving = patient.receive({ waitSeconds: 600 })
    await proxy.set('blackhole')
    const settled = Promise.allSettled([held!.acknowledge(), patient.send('unknown')])
    await patient.close()
    expect(await receiving).toEqual([])
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })

  it('never loses a message that is released as the connection breaks', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, (_, n) => mailbox.send(n)))
    const held = await take(mailbox, 20)
    const nacks = held.map((message) => message.nack())
    await breakOnce(proxy)
    await Promise.allSettled(nacks)
    const seen = new Set<string>()
    while (seen.size < ids.length)
      for (const message of await take(mailbox, 1)) {
        seen.add(message.id)
        await message.acknowledge()
      }
    expect([...seen].toSorted()).toEqual(ids.toSorted())
  })

  it('rejects open if the server is unreachable, and opens later', async () => {
    await proxy.set('refuse')
    const later = rabbitmqMailbox({ url: proxy.through(url), name: mailbox.name, timeoutMs })
    await expect(later.open()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await proxy.set('blackhole')
    await expect(later.open()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await proxy.set('pass')
    await later.open()
    await later.send('at last')
    expect(await take(later, 1)).toHaveLength(1)
    await later.close()
  })

  it('does not reveal a wrong password', async () => {
    const wrong = new URL(url)
    wrong.password = 'hunter2'
    const refused = rabbitmqMailbox({ url: wrong.href, name: mailbox.name })
    const error: unknown = await refused.open().catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    expect(String(error)).not.toContain('hunter2')
  })

  it('redelivers the messages of a killed process at once', async () => {
    await Promise.all(Array.from({ length: 30 }, (_, n) => mailbox.send(n)))
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, 'holder.ts'), url, mailbox.name, '30'],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    await once(child.stdout, 'data')
    expect(await mailbox.receive({ max: 10 })).toEqual([])
    child.kill('SIGKILL')
    await once(child, 'exit')
    const again = await take(mailbox, 30)
    expect(numbersOf(again)).toEqual(Array.from({ length: 30 }, (_, n) => n))
    expect(again.map(({ deliveries, failures }) => [deliveries, failures])).toEqual(
      again.map(() => [2, 0]),
    )
  })
})

/** Breaks all connections, and waits for new ones. */
async function breakOnce(proxy: Proxy): Promise<void> {
  await proxy.set('reset')
  await proxy.set('pass')
}

/** Receives this many messages, whatever happens in between. */
async function take(from: Mailbox, count: number): Promise<Message[]> {
  const taken: Message[] = []
  while (taken.length < count) {
    const max = Math.min(10, count - taken.length)
    const request = { max, waitSeconds: 10, visibilitySeconds: 600 }
    taken.push(...(await eventually(() => from.receive(request))))
  }
  return taken
}

const numbersOf = (messages: Message[]): number[] =>
  messages.map((message) => Number(message.value())).toSorted((a, b) => a - b)

/** Calls wait by themselves until the server is reachable, so repeating is enough. */
async function eventually<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++)
    try {
      return await ask()
    } catch (error) {
      if (tries === 50) throw error
    }
}
