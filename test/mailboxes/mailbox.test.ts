import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import type { ReceiveRequest, Delivery, OutgoingMessage } from '../../src/mailbox.ts'
import { mailbox } from '../../src/mailboxes/mailbox.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { aDelivery, aDriver } from './a-driver.ts'

const options = { clock: fakeClock() }
const unavailable = (): RedriveError =>
  new RedriveError('MAILBOX_UNAVAILABLE', 'the broker is unreachable')

describe('mailbox', () => {
  it.each(['', 'x'.repeat(201), 'a\nb'])('rejects the name %j', (name) => {
    expect(() => mailbox(aDriver({ name }), options)).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }),
    )
  })

  it('opens its driver once, and again only after a failure', async () => {
    let opened = 0
    const open = async (): Promise<void> => {
      opened += 1
      if (opened === 1) throw unavailable()
    }
    const box = mailbox(aDriver({ open }), options)
    await expect(box.open()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await Promise.all([box.open(), box.open()])
    await box.open()
    expect(opened).toBe(2)
  })

  it('closes its driver once, after it has opened', async () => {
    const seen: string[] = []
    let opened = (): void => {}
    const open = async (): Promise<void> => {
      await new Promise<void>((resolve) => (opened = resolve))
      seen.push('opened')
    }
    const close = async (): Promise<void> => void seen.push('closed')
    const box = mailbox(aDriver({ open, close }), options)
    const opening = box.open()
    const closing = [box.close(), box.close()]
    opened()
    await Promise.all([opening, ...closing])
    expect(seen).toEqual(['opened', 'closed'])
  })

  it('reports the health of a driver that throws, without the messages of foreign errors', async () => {
    const problemsAfter = async (error: Error): Promise<string[]> => {
      const health = async (): Promise<never> => {
        throw error
      }
      const { ok, problems } = await mailbox(aDriver({ health }), options).health()
      expect(ok).toBe(false)
      return problems
    }
    expect(await problemsAfter(unavailable())).toEqual(['the broker is unreachable'])
    expect(await problemsAfter(new Error('amqp://user:hunter2@host'))).toEqual([
      'the broker gave no answer',
    ])
  })

  it('passes on errors of receive, unless the caller has given up', async () => {
    const waiting: ((error: Error) => void)[] = []
    const receive = (): Promise<Delivery[]> => new Promise((_, reject) => void waiting.push(reject))
    const box = mailbox(aDriver({ receive }), options)
    const stop = new AbortController()
    const failing = box.receive()
    const stopped = box.receive({ signal: stop.signal })
    const closed = box.receive()
    waiting[0]!(unavailable())
    await expect(failing).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    stop.abort()
    waiting[1]!(unavailable())
    expect(await stopped).toEqual([])
    await box.close()
    waiting[2]!(unavailable())
    expect(await closed).toEqual([])
  })

  it('aborts the signal of the driver when the caller gives up, and when the mailbox closes', async () => {
    const asks: ReceiveRequest[] = []
    const waiting: ((found: Delivery[]) => void)[] = []
    const receive = (ask: ReceiveRequest): Promise<Delivery[]> => {
      asks.push(ask)
      return new Promise((resolve) => void waiting.push(resolve))
    }
    const box = mailbox(aDriver({ receive }), options)
    const stop = new AbortController()
    const { signal } = new AbortController()
    const all = [box.receive({ signal: stop.signal }), box.receive(), box.receive({ signal })]
    stop.abort()
    expect(asks.map((ask) => ask.signal.aborted)).toEqual([true, false, false])
    void box.close()
    expect(asks.map((ask) => ask.signal.aborted)).toEqual([true, true, true])
    // Messages that still arrive are delivered: no other receiver could get them before they
    // expire.
    for (const [n, give] of waiting.entries()) give([aDelivery({ id: `m${n}` })])
    expect((await Promise.all(all)).flat().map((one) => one.id)).toEqual(['m0', 'm1', 'm2'])
  })

  it('leaves no listener on the signal of a caller', async () => {
    const { signal } = new AbortController()
    await mailbox(aDriver({ receive: async () => [] }), options).receive({ signal })
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('passes a message to the driver that the sender can no longer change', async () => {
    const outgoing: OutgoingMessage[] = []
    const send = async (message: OutgoingMessage): Promise<void> => void outgoing.push(message)
    const headers = { a: 'b' }
    const body = Buffer.from('as it was')
    const id = await mailbox(aDriver({ send }), options).send(body, { headers })
    body.fill(0)
    headers.a = 'changed'
    const bytes = Buffer.from('as it was')
    const contentType = 'application/octet-stream'
    expect(outgoing).toEqual([{ id, bytes, contentType, headers: { a: 'b' } }])
  })

  it('rejects operations that the driver does not support', async () => {
    const { powers } = aDriver()
    const box = mailbox(
      aDriver({ powers: { ...powers, delay: false, purge: false, extend: false } }),
      options,
    )
    const refused = { code: 'INVALID_INPUT', message: expect.stringContaining('test cannot') }
    await expect(box.send(1, { delaySeconds: 1 })).rejects.toMatchObject(refused)
    await expect(box.purge()).rejects.toMatchObject(refused)
    const [message] = await box.receive()
    await expect(message!.extend(1)).rejects.toMatchObject(refused)
    expect(box).toMatchObject({ browse: undefined })
  })
})
