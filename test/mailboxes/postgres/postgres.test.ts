import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import {
  postgresMailbox,
  type PostgresMailboxOptions,
} from '../../../src/mailboxes/postgres/postgres.ts'
import { migrations } from '../../../src/mailboxes/postgres/schema.ts'
import { postgresPlace, type Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'
import { carriesSomeAtATime } from '../large-messages.ts'

const postgres = backend('postgres')
const bouncer = backend('pgbouncer')

describe('the address of a postgresMailbox', () => {
  const made = (options: Partial<PostgresMailboxOptions>) => () =>
    postgresMailbox({ url: 'postgres://u:secret@host/db', name: 'work', ...options })

  it.each([
    { url: 'http://u:secret@host' },
    { url: 'secret' },
    { url: 'postgres://u:secret@host/db?schema=a-b' },
    { url: 'postgres://u:secret@host/db?poolSize=0' },
    { url: 'postgres://u:secret@host/db?allowUnsafe=perhaps' },
    { schema: '"' },
    { poolSize: 1.5 },
    { retentionSeconds: -1 },
  ])('is rejected without showing a secret: %j', (options) => {
    expect(made(options)).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }))
    expect(made(options)).not.toThrow(/secret/)
  })
})

describe.skipIf(postgres.missing)('postgresMailbox', () => {
  let place: Place
  const opened: Mailbox[] = []

  beforeEach(() => {
    place = postgresPlace(postgres.url)
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()))
    await place.clear()
  })

  const open = async (options: Partial<PostgresMailboxOptions> = {}): Promise<Mailbox> => {
    const where = { url: postgres.url, schema: place.name, name: 'work' }
    const mailbox = postgresMailbox({ ...where, ...options })
    opened.push(mailbox)
    await mailbox.open()
    return mailbox
  }
  const ask = async (...statements: string[]): Promise<Record<string, unknown>[]> => {
    const client = new Client({ connectionString: postgres.url })
    await client.connect()
    try {
      let rows: Record<string, unknown>[] = []
      for (const text of statements) ({ rows } = await client.query(text))
      return rows
    } finally {
      await client.end()
    }
  }
  /** Makes everything older than it is. */
  const age = (ms: number): Promise<unknown> =>
    ask(`UPDATE "${place.name}".messages SET enqueued_at = enqueued_at - ${ms}`)

  it('returns large messages a few at a time, and reports that there are more', async () => {
    await carriesSomeAtATime(await open())
  })

  it('creates its schema once when eight open at once', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, (_, n) => open({ name: `m${n % 3}` })))
    await Promise.all(all.map((mailbox) => mailbox.send('hello')))
    expect(await all[0]!.approximateCount()).toBe(3)
  })

  it('rejects a schema with other tables or a newer version, and leaves it unchanged', async () => {
    await ask(`CREATE SCHEMA "${place.name}" CREATE TABLE orders (n int)`)
    await expect(open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
    await place.clear()
    await (await open()).close()
    await ask(`UPDATE "${place.name}".meta SET value = '99'`)
    await expect(open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
  })

  it('migrates a schema of the first version with its messages', async () => {
    const { name } = place
    await ask(
      `CREATE SCHEMA "${name}" CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL)`,
      migrations[0]!.replaceAll('@', `"${name}".`),
      `INSERT INTO "${name}".meta VALUES ('mail', '1')`,
      `INSERT INTO "${name}".mailboxes (name) VALUES ('work')`,
      `INSERT INTO "${name}".messages (seq, mailbox, id, place, held, deliveries, failures, enqueued_at, about, bytes)
         SELECT nextval('"${name}".places'), id, 'old', 1, false, 2, 1, 5, '{"contentType":"text/plain","headers":{}}', 'old' FROM "${name}".mailboxes`,
    )
    const mailbox = await open()
    await mailbox.send('new')
    const found = await mailbox.receive({ max: 10 })
    expect(found.map((message) => message.value())).toEqual(['old', 'new'])
    expect(found[0]).toMatchObject({ id: 'old', deliveries: 3, failures: 1 })
    await found[0]!.nack({ failed: false })
    expect(await mailbox.receive()).toMatchObject([{ id: 'old', deliveries: 3 }])
  })

  it('uses one prepared statement per call on its own connection', async () => {
    const mailbox = await open({ poolSize: 1 })
    const last = `SELECT query FROM pg_stat_activity WHERE query LIKE '%"${place.name}".messages%' AND pid <> pg_backend_pid()`
    // In a transaction of several statements the last one would be the commit.
    for (let queries: unknown[] = []; queries.length === 0; queries = await ask(last))
      expect(await mailbox.approximateCount()).toBe(0)
  })

  it('reports a database that does not exist', async () => {
    const url = new URL(postgres.url)
    url.pathname = '/nowhere'
    await expect(open({ url: url.href })).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
  })

  it('removes each expired message, reports the number, and keeps held ones', async () => {
    const counts: number[] = []
    const mailbox = await open({ retentionSeconds: 259_200 })
    mailbox.on('expired', ({ count }) => counts.push(count))
    await mailbox.send('old', { id: 'same' })
    await mailbox.send('held')
    const [, held] = await mailbox.receive({ max: 2 })
    await age(259_200_000)
    await mailbox.send('young')
    // The receipt of the first one lapses, the other is still held.
    await ask(`UPDATE "${place.name}".messages SET hidden_until = 1 WHERE id = 'same'`)
    await mailbox.send('again', { id: 'same' })
    expect(counts).toEqual([1])
    const found = await mailbox.receive({ max: 10 })
    expect(found.map((message) => message.value())).toEqual(['young', 'again'])
    await held!.acknowledge()
    expect((await mailbox.health()).checks).toMatchObject({ expired: '1', retention: '259200 s' })
  })

  it('never expires messages without a retention', async () => {
    const mailbox = await open()
    await mailbox.send('old')
    await age(10 * 365 * 86_400_000)
    expect(await mailbox.receive()).toHaveLength(1)
    expect((await mailbox.health()).checks).toMatchObject({ expired: '0', retention: 'for ever' })
  })

  it('removes more messages than one statement can, in the background', async () => {
    const first = await open()
    await Promise.all(Array.from({ length: 1100 }, (_, n) => first.send(n)))
    await age(259_200_000)
    await first.send('young')
    const mailbox = await open({ retentionSeconds: 259_200 })
    const swept = new Promise<void>((resolve) => {
      let left = 1100
      mailbox.on('expired', ({ count }) => (left -= count) === 0 && resolve())
    })
    const [young] = await mailbox.receive()
    await young!.acknowledge()
    await swept
    const rows = await ask(`SELECT count(*)::int AS n FROM "${place.name}".messages`)
    expect(rows).toEqual([{ n: 0 }])
  })

  it('puts returned and lapsed messages behind those that wait', async () => {
    const mailbox = await open()
    for (const body of ['a', 'b', 'c']) await mailbox.send(body)
    const [first] = await mailbox.receive()
    await mailbox.receive({ visibilitySeconds: 60 })
    await first!.nack()
    await ask(`UPDATE "${place.name}".messages SET hidden_until = 1 WHERE held`)
    // Another handle, which has not just checked for lapsed messages.
    const found = await (await open()).receive({ max: 10 })
    expect(found.map((message) => message.value())).toEqual(['c', 'a', 'b'])
  })

  it('keeps messages in the order of their calls, even if none was awaited', async () => {
    const mailbox = await open()
    const sent = await Promise.all(Array.from({ length: 300 }, (_, n) => mailbox.send(n)))
    const taken: string[] = []
    while (taken.length < sent.length)
      taken.push(...(await mailbox.receive({ max: 10 })).map(({ id }) => id))
    expect(taken).toEqual(sent)
  })

  it('purges more messages than one statement can', async () => {
    const mailbox = await open()
    await mailbox.send('one')
    await ask(
      `INSERT INTO "${place.name}".messages (seq, mailbox, id, place, held, deliveries, failures, enqueued_at, about, bytes)
         SELECT -n, mailbox, n, -n, false, 0, 0, 0, about, bytes FROM "${place.name}".messages, generate_series(1, 25000) AS n`,
    )
    expect(await mailbox.purge()).toBe(25_001)
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('uses an index although the statistics report an empty table', async () => {
    const mailbox = await open()
    const { name } = place
    await ask(`ALTER TABLE "${name}".messages SET (autovacuum_enabled = off)`)
    await mailbox.send('one')
    await ask(
      `INSERT INTO "${name}".messages (seq, mailbox, id, place, held, deliveries, failures, enqueued_at, about, bytes)
         SELECT n + 1000, mailbox, n, n + 1000, false, 0, 0, 0, about, bytes FROM "${name}".messages, generate_series(1, 20000) AS n`,
      `UPDATE pg_class SET reltuples = 0 WHERE oid = '"${name}".messages'::regclass`,
    )
    const read = `SELECT sum(idx_tup_read)::int AS n FROM pg_stat_user_indexes WHERE schemaname = '${name}'`
    const scanned = `SELECT seq_tup_read::int AS n FROM pg_stat_user_tables WHERE schemaname = '${name}' AND relname = 'messages'`
    const found = await mailbox.receive({ max: 10 })
    await Promise.all(found.map((message) => message.acknowledge()))
    await mailbox.browse!({ limit: 10 })
    await mailbox.close()
    expect(Number((await ask(scanned))[0]!['n'])).toBeLessThan(5000)
    expect(Number((await ask(read))[0]!['n'])).toBeLessThan(5000)
    expect(found).toHaveLength(10)
  })

  it.skipIf(bouncer.missing)(
    'works behind a pooler, where it polls without notifications',
    async () => {
      const pooled = await open({ url: bouncer.url })
      const receiving = pooled.receive({ waitSeconds: 60 })
      const direct = await open()
      const id = await direct.send('found')
      const [message] = await receiving
      expect(message!.id).toBe(id)
      await message!.extend(60)
      await message!.nack()
      const [again] = await pooled.receive({ waitSeconds: 60 })
      await again!.acknowledge()
      expect(await direct.approximateCount()).toBe(0)
    },
  )

  it.skipIf(bouncer.missing)('leaves the sessions of a pooler unchanged', async () => {
    const pooled = await open({ url: bouncer.url, poolSize: 1 })
    for (let n = 0; n < 5; n++) await pooled.send(n)
    for (let n = 0; n < 5; n++) await (await pooled.receive())[0]!.acknowledge()
    const client = new Client({ connectionString: bouncer.url })
    await client.connect()
    try {
      const prepared = await client.query(
        `SELECT 1 FROM pg_prepared_statements WHERE statement LIKE '%"${place.name}"%'`,
      )
      expect(prepared.rows).toEqual([])
      expect((await client.query('SHOW enable_seqscan')).rows).toEqual([{ enable_seqscan: 'on' }])
    } finally {
      await client.end()
    }
  })

  it('is woken by a notification', async () => {
    const waiting = await open()
    const receiving = waiting.receive({ waitSeconds: 60 })
    for (let state = ''; state !== 'listening';)
      state = (await waiting.health()).checks['wakeups'] ?? ''
    const id = await (await open()).send('woken')
    expect((await receiving)[0]!.id).toBe(id)
  })
})
