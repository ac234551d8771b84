import { mkdir, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { migrations } from '../../../src/mailboxes/sqlite/schema.ts'
import { sqliteMailbox, type SqliteMailboxOptions } from '../../../src/mailboxes/sqlite/sqlite.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import { temporaryDirectory } from './sqlite-bench.ts'
import { carriesSomeAtATime } from '../large-messages.ts'

/** All threads of this file: a mailbox may reuse the thread of a closed one. */
const threads: Worker[] = []
process.on('worker', (worker) => threads.push(worker))

describe('sqliteMailbox', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string
  let clock: FakeClock
  const opened: Mailbox[] = []

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'mail.db')
    clock = fakeClock()
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()))
    await directory.clear()
  })

  const open = async (options: Partial<SqliteMailboxOptions> = {}): Promise<Mailbox> => {
    const mailbox = sqliteMailbox({ path, name: 'work', clock, ...options })
    opened.push(mailbox)
    await mailbox.open()
    return mailbox
  }

  /** The counts that this handle reports. */
  const expiredOf = (mailbox: Mailbox): number[] => {
    const counts: number[] = []
    mailbox.on('expired', ({ count }) => counts.push(count))
    return counts
  }

  it('migrates the messages of a file of version 1', async () => {
    const db = new DatabaseSync(path)
    db.exec(migrations[0]!)
    db.exec(`CREATE TABLE mail_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
      INSERT INTO mail_meta VALUES ('schema', '1');
      INSERT INTO mailboxes VALUES (1, 'other'), (2, 'work');
      UPDATE counter SET n = 3;
      INSERT INTO messages VALUES (1, 2, 'held', 1, ${clock.now() + 1000}, 1, 4, 2, 5, 6, NULL),
        (2, 2, 'waits', 2, NULL, 0, 0, 0, 5, NULL, NULL), (3, 1, 'not ours', 3, NULL, 0, 0, 0, 5, NULL, NULL);
      INSERT INTO bodies SELECT seq, '{"contentType":"text/plain","headers":{}}', CAST(id AS BLOB) FROM messages`)
    db.close()
    const mailbox = await open()
    await mailbox.send('new')
    const first = await mailbox.receive({ max: 10 })
    expect(first.map((message) => message.value())).toEqual(['waits', 'new'])
    await Promise.all(first.map((message) => message.acknowledge()))
    clock.set(clock.now() + 1000)
    const [held] = await mailbox.receive({ max: 10 })
    expect(held).toMatchObject({ id: 'held', deliveries: 5, failures: 2 })
    await held!.nack({ failed: false })
    expect(await mailbox.receive()).toMatchObject([{ id: 'held', deliveries: 5 }])
  })

  it('hides each message for the visibility time of its receiver', async () => {
    const mailbox = await open()
    for (const body of ['a', 'b', 'c']) await mailbox.send(body)
    const [short, long] = await Promise.all([
      mailbox.receive({ max: 2, visibilitySeconds: 10 }),
      mailbox.receive({ max: 2, visibilitySeconds: 20 }),
    ])
    expect([short.length, long.length]).toEqual([2, 1])
    clock.set(clock.now() + 10_000)
    const again = await mailbox.receive({ max: 10 })
    expect(again.map((message) => message.value())).toEqual(['a', 'b'])
    await long[0]!.acknowledge()
  })

  describe('retention', () => {
    it('removes messages of that age, and reports how many', async () => {
      const mailbox = await open({ retentionSeconds: 259_200 })
      const counts = expiredOf(mailbox)
      await Promise.all([mailbox.send('a'), mailbox.send('b')])
      clock.set(clock.now() + 259_200_000 - 1)
      const found = await mailbox.receive({ max: 10 })
      expect(found).toHaveLength(2)
      for (const message of found) await message.nack()
      clock.set(clock.now() + 1)
      expect(await mailbox.receive({ max: 10 })).toEqual([])
      expect(counts).toEqual([2])
      expect((await mailbox.health()).checks).toMatchObject({ expired: '2', retention: '259200 s' })
    })

    it('is that of the receiver, also for messages sent without one', async () => {
      const lasting = await open()
      await lasting.send('old')
      clock.set(clock.now() + 20_000)
      expect(await lasting.receive({ visibilitySeconds: 0 })).toHaveLength(1)
      const brief = await open({ retentionSeconds: 10 })
      const counts = [expiredOf(lasting), expiredOf(brief)]
      expect(await brief.receive()).toEqual([])
      expect(counts).toEqual([[], [1]])
    })

    it('is unlimited by default and with 0', async () => {
      const mailbox = await open({ retentionSeconds: 0 })
      await (await open()).send('old')
      clock.set(clock.now() + 10 * 365 * 86_400_000)
      expect(await mailbox.receive({ visibilitySeconds: 0 })).toHaveLength(1)
      expect(await (await open()).receive()).toHaveLength(1)
    })

    it('removes single messages, never the mailbox', async () => {
      const mailbox = await open({ retentionSeconds: 60 })
      await mailbox.send('first')
      clock.set(clock.now() + 50_000)
      await mailbox.send('second')
      clock.set(clock.now() + 20_000)
      const found = await mailbox.receive({ max: 10 })
      expect(found.map((message) => message.value())).toEqual(['second'])
    })

    it('keeps an expired message while its receiver holds it', async () => {
      const mailbox = await open({ retentionSeconds: 10 })
      const counts = expiredOf(mailbox)
      await mailbox.send('slow')
      const [message] = await mailbox.receive({ visibilitySeconds: 60 })
      clock.set(clock.now() + 20_000)
      expect(await mailbox.receive()).toEqual([])
      await message!.acknowledge()
      expect(counts).toEqual([])
    })

    it('removes a message that is returned after its retention', async () => {
      const mailbox = await open({ retentionSeconds: 10 })
      const counts = expiredOf(mailbox)
      await mailbox.send('slow')
      const [message] = await mailbox.receive({ visibilitySeconds: 60 })
      clock.set(clock.now() + 20_000)
      await mailbox.send('next')
      await message!.nack()
      const found = await mailbox.receive({ max: 10 })
      expect(found.map((one) => one.value())).toEqual(['next'])
      expect(counts).toEqual([1])
    })

    it('accepts an id again once its message has expired', async () => {
      const mailbox = await open({ retentionSeconds: 10 })
      await mailbox.send('old', { id: 'one' })
      await mailbox.send('ignored', { id: 'one' })
      clock.set(clock.now() + 20_000)
      await mailbox.send('new', { id: 'one' })
      const found = await mailbox.receive({ max: 10 })
      expect(found.map((message) => message.value())).toEqual(['new'])
    })

    const throws = (): void => {
      throw new Error('mine')
    }
    it.each([
      ['throws', throws],
      ['rejects', async () => throws()],
    ])('ignores the error of a listener that %s', async (_, listener) => {
      const mailbox = await open({ retentionSeconds: 1 })
      mailbox.on('expired', listener)
      await mailbox.send('gone')
      clock.set(clock.now() + 2000)
      await mailbox.send('here')
      expect((await mailbox.receive())[0]?.value()).toBe('here')
    })

    it.each([-1, Number.NaN, Infinity])('rejects %s seconds', (retentionSeconds) => {
      expect(() => sqliteMailbox({ path, name: 'work', retentionSeconds })).toThrow(
        expect.objectContaining({ code: 'INVALID_CONFIG' }),
      )
    })
  })

  it('creates a file that only its owner can read', async () => {
    await open()
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it('separates the mailboxes of one file', async () => {
    const [one, two] = [await open({ name: 'one' }), await open({ name: 'two' })]
    await one.send('for one', { id: 'same' })
    await two.send('for two', { id: 'same' })
    expect((await two.receive({ max: 10 })).map((message) => message.value())).toEqual(['for two'])
    expect(await one.purge()).toBe(1)
    expect(await two.approximateCount()).toBe(1)
  })

  it('puts returned and lapsed messages behind visible ones', async () => {
    const mailbox = await open()
    for (const body of ['a', 'b', 'c']) await mailbox.send(body)
    const [first] = await mailbox.receive()
    await mailbox.receive({ visibilitySeconds: 1 })
    await first!.nack()
    await clock.advance(1000)
    const found = await mailbox.receive({ max: 10 })
    expect(found.map((message) => message.value())).toEqual(['c', 'a', 'b'])
  })

  it('returns a message without a receiver to its place', async () => {
    const mailbox = await open()
    for (const body of ['a', 'b']) await mailbox.send(body)
    const stop = new AbortController()
    const receiving = mailbox.receive({ signal: stop.signal })
    await Promise.resolve()
    stop.abort()
    const dropped = await receiving
    const found = await mailbox.receive({ max: 10 })
    const all = [...dropped, ...found]
    expect(all.map((message) => message.value())).toEqual(['a', 'b'])
    expect(all.map((message) => message.deliveries)).toEqual([1, 1])
  })

  it('answers a receiver without a wait while others wait', async () => {
    const mailbox = await open()
    const stop = new AbortController()
    const patient = Array.from({ length: 60 }, () =>
      mailbox.receive({ max: 10, waitSeconds: 600, signal: stop.signal }),
    )
    expect(await mailbox.receive()).toEqual([])
    stop.abort()
    expect((await Promise.all(patient)).flat()).toEqual([])
  })

  it('rejects a file of another program, without changing it', async () => {
    const other = new DatabaseSync(path)
    other.exec('CREATE TABLE meta (key TEXT)')
    other.close()
    await expect(open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
    const text = join(directory.path, 'text')
    await writeFile(text, 'not a database at all, but long enough to look like one'.repeat(50))
    await expect(open({ path: text })).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
  })

  it('rejects a file of a newer version', async () => {
    const mailbox = await open()
    await mailbox.close()
    const file = new DatabaseSync(path)
    file.exec("UPDATE mail_meta SET value = '99'")
    file.close()
    await expect(open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
  })

  it('reports a path that cannot be opened, and opens it once it can', async () => {
    const sub = join(directory.path, 'sub')
    const mailbox = sqliteMailbox({ path: join(sub, 'mail.db'), name: 'work' })
    opened.push(mailbox)
    await expect(mailbox.open()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    expect(await mailbox.health()).toMatchObject({ ok: false })
    await mkdir(sub)
    await mailbox.open()
    expect(await mailbox.health()).toMatchObject({ ok: true })
  })

  it('rejects writes when its file was moved', async () => {
    const mailbox = await open()
    await mailbox.send('kept')
    await rename(path, `${path}.moved`)
    await expect(mailbox.send('lost')).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await rename(`${path}.moved`, path)
    await mailbox.send('kept too')
    expect(await mailbox.approximateCount()).toBe(2)
  })

  it('gives each message its own bytes', async () => {
    const mailbox = await open()
    await mailbox.send(Buffer.from('one'))
    await mailbox.send(Buffer.from('three'))
    const found = await mailbox.receive({ max: 2 })
    expect(found.map(({ body }) => body.bytes.buffer.byteLength)).toEqual([3, 5])
  })

  it('settles every call when the thread dies, and starts a new thread', async () => {
    const mailbox = await open()
    await mailbox.send('before')
    const other = new DatabaseSync(path)
    other.exec('BEGIN IMMEDIATE')
    const lost = mailbox.send('during')
    const ends = Promise.all(threads.map((thread) => thread.terminate()))
    await expect(lost).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await ends
    other.exec('ROLLBACK')
    other.close()
    await mailbox.send('after')
    const found = await mailbox.receive({ max: 10 })
    expect(found.map((message) => message.value())).toEqual(['before', 'after'])
  })

  it('returns large messages a few at a time, and reports that there are more', async () => {
    await carriesSomeAtATime(await open())
  })

  it('rejects a cursor that browse did not return', async () => {
    const mailbox = await open()
    await expect(mailbox.browse!({ after: 'x' })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})
