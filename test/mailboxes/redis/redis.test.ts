import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { redisMailbox, type RedisMailboxOptions } from '../../../src/mailboxes/redis/redis.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { ask, expectSound, openedMailboxes, single } from './redis-bench.ts'

const { url } = single

describe.skipIf(single.missing !== undefined)('redisMailbox', () => {
  const mailboxes = openedMailboxes()
  let place: Place
  let tag: string

  beforeEach(() => {
    place = redisPlace(url)
    tag = `{${place.name}/m}`
  })

  afterEach(async () => {
    await mailboxes.close()
    await place.clear()
  })

  const open = (options: Partial<RedisMailboxOptions> = {}): Promise<Mailbox> =>
    mailboxes.open({ url, prefix: place.name, ...options })

  const bodies = async (mailbox: Mailbox, max = 10): Promise<unknown[]> => {
    const messages = await mailbox.receive({ max })
    return messages.map((message) => message.value())
  }

  /** Makes a message so old that any retention is over. */
  const age = async (id: string): Promise<void> => {
    const aging = `
      local state = redis.call('HGET', KEYS[1], ARGV[1])
      local aged = string.sub(state, 1, 32) .. struct.pack('>d', 1) .. string.sub(state, 41)
      return redis.call('HSET', KEYS[1], ARGV[1], aged)`
    await ask(url, 'EVAL', aging, '1', `${tag}:state`, id)
  }

  /** Opens with a retention of a day, and counts what this handle reports. */
  const openForADay = async (
    options: Partial<RedisMailboxOptions> = {},
  ): Promise<{ mailbox: Mailbox; expired: () => number }> => {
    const mailbox = await open({ retentionSeconds: 86_400, ...options })
    let expired = 0
    mailbox.on('expired', ({ count }) => (expired += count))
    return { mailbox, expired: () => expired }
  }

  it('puts returned and lapsed messages behind those that wait', async () => {
    const mailbox = await open()
    for (const body of ['a', 'b', 'c', 'd']) await mailbox.send(body)
    const [a] = await mailbox.receive()
    await mailbox.receive({ visibilitySeconds: 0 })
    await a!.nack()
    expect(await bodies(mailbox)).toEqual(['c', 'd', 'a', 'b'])
  })

  it('puts back more lapsed messages than one script can', async () => {
    const mailbox = await open()
    await Promise.all(Array.from({ length: 250 }, (_, n) => mailbox.send(n)))
    for (let n = 0; n < 25; n++) await mailbox.receive({ max: 10, visibilitySeconds: 0 })
    const seen = new Set<unknown>()
    while (seen.size < 250) for (const body of await bodies(mailbox)) seen.add(body)
    expect(await expectSound(url, tag)).toBe(250)
  })

  it('removes more expired messages than one script can, and keeps the others', async () => {
    const { mailbox, expired } = await openForADay()
    const old = Array.from({ length: 230 }, (_, n) => `old ${n}`)
    await Promise.all(old.map((id) => mailbox.send(id, { id })))
    await mailbox.send('stays')
    await Promise.all(old.map((id) => age(id)))
    expect(await bodies(mailbox)).toEqual(['stays'])
    expect(expired()).toBe(230)
    expect(await expectSound(url, tag)).toBe(1)
    expect((await mailbox.health()).checks).toMatchObject({ expired: '230', messages: '1' })
  })

  it('never expires messages without a retention', async () => {
    const mailbox = await open()
    await mailbox.send('old', { id: 'old' })
    await age('old')
    expect(await bodies(mailbox)).toEqual(['old'])
  })

  it('stores a message with the id of an expired one', async () => {
    const { mailbox, expired } = await openForADay()
    await mailbox.send('old', { id: 'x' })
    await age('x')
    await Promise.all(['new', 'repeat'].map((body) => mailbox.send(body, { id: 'x' })))
    expect(await bodies(mailbox)).toEqual(['new'])
    expect(expired()).toBe(1)
    await age('x')
    await mailbox.send('repeat', { id: 'x' })
    expect(await expectSound(url, tag)).toBe(1)
    expect(await bodies(mailbox)).toEqual([])
  })

  it('keeps an expired message while it is held, and removes it afterwards', async () => {
    const { mailbox, expired } = await openForADay()
    for (const id of ['acked', 'failed']) await mailbox.send(id, { id })
    const [acked, failed] = await mailbox.receive({ max: 2, visibilitySeconds: 60 })
    await mailbox.send('other', { id: 'other' })
    for (const id of ['acked', 'failed', 'other']) await age(id)
    expect(await mailbox.receive()).toEqual([])
    expect(expired()).toBe(1)
    await acked!.acknowledge()
    await failed!.nack()
    expect(await mailbox.receive()).toEqual([])
    expect(expired()).toBe(2)
    expect(await expectSound(url, tag)).toBe(0)
  })

  it('accepts new messages once old ones have expired', async () => {
    const { mailbox, expired } = await openForADay({ maxMessages: 2 })
    for (const id of ['a', 'b']) await mailbox.send(id, { id })
    await expect(mailbox.send('c')).rejects.toMatchObject({ code: 'MAILBOX_FULL' })
    await age('a')
    await mailbox.send('c')
    expect(expired()).toBe(1)
    expect(await bodies(mailbox)).toEqual(['b', 'c'])
  })

  it('sets no time to live on keys', async () => {
    const mailbox = await open({ retentionSeconds: 60 })
    await mailbox.send('stays')
    await mailbox.receive()
    for (const key of ['hidden', 'order', 'state', 'body', 'meta'])
      expect(await ask(url, 'TTL', `${tag}:${key}`)).toBe(-1)
  })

  it('rejects more than maxMessages, including hidden ones, and accepts an existing id', async () => {
    const mailbox = await open({ maxMessages: 2 })
    await mailbox.send('a', { id: 'a' })
    await mailbox.receive()
    const [b, c, again] = await Promise.allSettled([
      mailbox.send('b'),
      mailbox.send('c'),
      mailbox.send('a', { id: 'a' }),
    ])
    expect([b.status, c.status, again.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(c).toMatchObject({ reason: { code: 'MAILBOX_FULL' } })
    expect(await expectSound(url, tag)).toBe(2)
  })

  it('stores an id once that is twice in a batch', async () => {
    const mailbox = await open()
    await Promise.all(['first', 'second'].map((body) => mailbox.send(body, { id: 'x' })))
    expect(await bodies(mailbox)).toEqual(['first'])
  })

  it('uses no receipt twice, even when the server has lost the last ones', async () => {
    const mailbox = await open()
    await mailbox.send('a', { id: 'a' })
    const [first] = await mailbox.receive({ visibilitySeconds: 60 })
    await mailbox.purge()
    await ask(url, 'DEL', `${tag}:meta`)
    await mailbox.send('a', { id: 'a' })
    const [second] = await mailbox.receive({ visibilitySeconds: 60 })
    await expect(first!.acknowledge()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    await second!.acknowledge()
  })

  it('invalidates a receipt when its message becomes visible, even if the clock goes back', async () => {
    const mailbox = await open()
    for (const id of ['a', 'b']) await mailbox.send(id, { id })
    const [a] = await mailbox.receive({ visibilitySeconds: 60 })
    await ask(url, 'ZADD', `${tag}:hidden`, '1', 'a')
    const [b] = await mailbox.receive()
    expect(b!.id).toBe('b')
    await expect(a!.acknowledge()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    expect(await expectSound(url, tag)).toBe(2)
  })

  it('notifies only when a receiver has found nothing', async () => {
    const mailbox = await open()
    const waiting = (): Promise<unknown> => ask(url, 'HGET', `${tag}:meta`, 'waiting')
    for (const expected of [null, '1', null]) {
      expect(await waiting()).toBe(expected)
      if (expected === null) await mailbox.receive()
      else await mailbox.send('x')
    }
  })

  it('delivers a body that another program wrote, and one with a damaged state', async () => {
    const mailbox = await open()
    for (const id of ['foreign', 'damaged']) await mailbox.send('x', { id })
    await ask(url, 'HSET', `${tag}:body`, 'foreign', Buffer.from([0xff, 0x00]))
    await ask(url, 'HSET', `${tag}:state`, 'damaged', 'nonsense')
    const [foreign, damaged] = await mailbox.receive({ max: 2 })
    expect(foreign!.body.contentType).toBe('application/octet-stream')
    expect(Buffer.from(foreign!.body.bytes)).toEqual(Buffer.from([0xff, 0x00]))
    expect(damaged).toMatchObject({ id: 'damaged', deliveries: 1 })
    await Promise.all([foreign!.acknowledge(), damaged!.acknowledge()])
    expect(await expectSound(url, tag)).toBe(0)
  })

  it('skips messages that lost their body or state, and reports them', async () => {
    const mailbox = await open()
    for (const id of ['a', 'b', 'c']) await mailbox.send(id, { id })
    await ask(url, 'HDEL', `${tag}:body`, 'a')
    await ask(url, 'HDEL', `${tag}:state`, 'b')
    const [message] = await mailbox.receive()
    expect(message!.id).toBe('c')
    expect(await expectSound(url, tag)).toBe(1)
    const { ok, problems } = await mailbox.health()
    expect(ok).toBe(false)
    expect(problems.join()).toMatch(/2 messages had lost/)
  })

  it('browses all messages page by page, and rejects an invalid position', async () => {
    const mailbox = await open()
    for (let n = 0; n < 5; n++) await mailbox.send(n, { id: String(n) })
    const [first] = await mailbox.receive()
    await first!.nack()
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await mailbox.browse!({ limit: 2, ...(after ? { after } : {}) })
      seen.push(...page.messages.map(({ id }) => id))
      after = page.after
    } while (after !== undefined)
    expect(seen).toEqual(['0', '1', '2', '3', '4'])
    await expect(mailbox.browse!({ after: '+inf' })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
  })

  it('separates names and prefixes', async () => {
    const names = ['a', 'a}', 'a}:body', '{a}', 'a%7D', 'a/b', 'ä', '%']
    for (const name of names) await (await open({ name })).send(name)
    for (const name of names) expect(await bodies(await open({ name }))).toEqual([name])
  })

  it('rejects calls before it is opened', async () => {
    const mailbox = mailboxes.make({ url, prefix: place.name })
    await expect(mailbox.send('x')).rejects.toMatchObject({ code: 'CLOSED' })
    expect((await mailbox.health()).ok).toBe(false)
  })

  it.each([
    { name: '' },
    { name: 'x'.repeat(201) },
    { name: 'a\nb' },
    { prefix: '{x}' },
    { prefix: 'a/b' },
    { maxMessages: 0 },
    { maxMessages: 1.5 },
    { timeoutMs: 0 },
    { waitReplicas: -1 },
    { url: 'http://x' },
  ])('rejects %j', (options) => {
    expect(() => redisMailbox({ url, name: 'm', ...options })).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }),
    )
  })
})
