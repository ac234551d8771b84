import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { connect } from '../../../src/connect/store.ts'
import { postgresStore, type PostgresStoreOptions } from '../../../src/stores/postgres/postgres.ts'
import { schemaVersion } from '../../../src/stores/postgres/schema.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { postgresPlace, type Place } from '../../servers/places.ts'
import { lacksPrivate, privatePostgres } from '../../servers/private.ts'
import { ask, missing, url } from './postgres-bench.ts'

const withSettings = (settings: string): string =>
  `${url}?options=${encodeURIComponent(
    settings
      .split(',')
      .map((one) => `-c ${one}`)
      .join(' '),
  )}`

describe.skipIf(missing)('postgresStore at open', () => {
  let place: Place

  beforeEach(() => {
    place = postgresPlace(url)
  })
  afterEach(() => place.clear())

  async function refusal(
    options: Partial<PostgresStoreOptions> = {},
  ): Promise<{ code?: string; message?: string }> {
    const store = postgresStore({ url, schema: place.name, ...options })
    const error: unknown = await store.open().catch((thrown: unknown) => thrown)
    await store.close()
    return error as { code?: string; message?: string }
  }

  it('creates its schema, also when several processes open at once', async () => {
    const stores = Array.from({ length: 5 }, () => postgresStore({ url, schema: place.name }))
    await Promise.all(stores.map((store) => store.open()))
    expect(await stores[0]!.add([aLetter()])).toEqual([{ kind: 'added' }])
    expect(await stores[4]!.tally('state')).toEqual(new Map([['pending', 1]]))
    await Promise.all(stores.map((store) => store.close()))
  })

  it('reports the settings that it checked', async () => {
    const store = postgresStore({ url, schema: place.name })
    await store.open()
    expect(await store.health()).toMatchObject({
      ok: true,
      checks: { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', writable: 'yes' },
    })
    await store.close()
  })

  it('is opened by a URL that names the schema', async () => {
    const store = await connect(`${url}?schema=${place.name}&poolSize=2`, systemClock)
    await store.open()
    await store.add([aLetter()])
    await store.close()
    expect(await ask(`SELECT count(*)::int FROM "${place.name}".letters`)).toEqual([[1]])
  })

  it('rejects a newer schema version, and leaves the schema unchanged', async () => {
    const store = postgresStore({ url, schema: place.name })
    await store.open()
    await store.close()
    const meta = `"${place.name}".meta`
    const newer = String(schemaVersion + 1)
    await ask(`UPDATE ${meta} SET value = $1 WHERE key = 'schema'`, [newer])
    const { code, message } = await refusal()
    expect(code).toBe('STORE_UNSAFE')
    expect(message).toContain('upgrade')
    expect(await ask(`SELECT value FROM ${meta} WHERE key = 'schema'`)).toEqual([[newer]])
  })

  it.each(['1', '2'])(
    'rejects the former schema version %s, and leaves it unchanged',
    async (old) => {
      await ask(`CREATE SCHEMA "${place.name}"`)
      const meta = `"${place.name}".meta`
      await ask(`CREATE TABLE ${meta} (key text PRIMARY KEY, value text NOT NULL)`)
      await ask(`INSERT INTO ${meta} VALUES ('schema', $1)`, [old])
      await ask(`CREATE TABLE "${place.name}".letters (id text PRIMARY KEY)`)
      const { code, message } = await refusal()
      expect(code).toBe('STORE_UNSAFE')
      expect(message).toContain(`has version ${old}, which this Redrive cannot read`)
      const tables = `SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1`
      expect(await ask(tables, [place.name])).toEqual([['letters'], ['meta']])
      expect(await ask(`SELECT value FROM ${meta}`)).toEqual([[old]])
    },
  )

  it('rejects a schema with other tables', async () => {
    await ask(`CREATE SCHEMA "${place.name}"`)
    await ask(`CREATE TABLE "${place.name}".bills (n int)`)
    expect(await refusal()).toMatchObject({ code: 'STORE_UNSAFE' })
    const tables = `SELECT tablename FROM pg_tables WHERE schemaname = $1`
    expect(await ask(tables, [place.name])).toEqual([['bills']])
  })

  it('uses an existing empty schema', async () => {
    await ask(`CREATE SCHEMA "${place.name}"`)
    const store = postgresStore({ url, schema: place.name })
    await store.open()
    expect((await store.health()).ok).toBe(true)
    await store.close()
  })

  it('needs no more privileges than its own schema', async () => {
    const role = `${place.name}_role`
    await ask(`CREATE ROLE "${role}" LOGIN; CREATE SCHEMA "${place.name}" AUTHORIZATION "${role}"`)
    try {
      const as = new URL(url)
      as.username = role
      const store = postgresStore({ url: as.href, schema: place.name })
      await store.open()
      expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
      await store.close()
    } finally {
      await ask(`DROP OWNED BY "${role}" CASCADE; DROP ROLE "${role}"`)
    }
  })

  it('rejects a read-only server, and reports it in health', async () => {
    const readOnly = withSettings('default_transaction_read_only=on')
    expect(await refusal({ url: readOnly })).toMatchObject({ code: 'STORE_UNSAFE' })
    const first = postgresStore({ url, schema: place.name })
    await first.open()
    await first.close()
    const store = postgresStore({ url: readOnly, schema: place.name, allowUnsafe: true })
    await store.open()
    expect(await store.health()).toMatchObject({ ok: false, checks: { writable: 'no' } })
    await expect(store.add([aLetter()])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await store.close()
  })

  it('reports dropped tables in health, and creates them at open', async () => {
    const store = postgresStore({ url, schema: place.name })
    await store.open()
    await store.add([aLetter({ queue: 'another' }), aLetter()])
    await place.clear()
    expect(await store.health()).toMatchObject({ ok: false })
    await expect(store.add([aLetter()])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await store.open()
    expect(await store.health()).toMatchObject({ ok: true, problems: [] })
    expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
    const { letters } = await store.claim({ worker: 'w', limit: 1, leaseMs: 1000 })
    expect(letters.map(({ queue }) => queue)).toEqual(['orders'])
    await store.close()
  })

  it('commits durably where synchronous_commit is off', async () => {
    const lax = withSettings('synchronous_commit=off')
    const store = postgresStore({ url: lax, schema: place.name })
    await store.open()
    expect((await store.health()).checks['synchronous_commit']).toContain('on')
    // What the server itself saw, while it wrote the letter.
    await ask(`CREATE TABLE "${place.name}".seen (setting text);
      CREATE FUNCTION "${place.name}".see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO "${place.name}".seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
      CREATE TRIGGER see AFTER INSERT ON "${place.name}".letters EXECUTE FUNCTION "${place.name}".see()`)
    expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
    expect(await ask(`SELECT setting FROM "${place.name}".seen`)).toEqual([['on']])
    await store.close()
  })

  it.each([
    ['a schema of an odd name', { schema: 'a"b' }],
    ['too small a pool', { poolSize: 1 }],
    ['another kind of URL', { url: 'mysql://root:secret@host/db' }],
    ['no URL', { url: 'secret' }],
    ['an answer that is none', { url: `${url}?allowUnsafe=perhaps` }],
  ])('refuses %s', (_, options) => {
    const make = (): unknown => postgresStore({ url, schema: place.name, ...options })
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }) as Error)
    expect(make).not.toThrow('secret')
  })

  it('reports an unreachable server without the password', async () => {
    const { code, message } = await refusal({ url: 'postgres://ada:secret@127.0.0.1:9/db' })
    expect(code).toBe('STORE_UNAVAILABLE')
    expect(message).toContain('127.0.0.1:9')
    expect(message).not.toContain('secret')
  })

  it('rejects every call before it is opened', async () => {
    const store = postgresStore({ url, schema: place.name })
    await expect(store.add([aLetter()])).rejects.toMatchObject({ code: 'CLOSED' })
    expect(await store.health()).toMatchObject({ ok: false })
    await store.close()
    await expect(store.open()).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe.skipIf(lacksPrivate.postgres())('postgresStore on a server that does not flush', () => {
  it('rejects the server, unless allowUnsafe is set', async () => {
    const server = await privatePostgres({ fsync: 'off', full_page_writes: 'off' })
    try {
      const store = postgresStore({ url: server.url })
      await expect(store.open()).rejects.toMatchObject({
        code: 'STORE_UNSAFE',
        message: expect.stringMatching(/fsync.*full_page_writes/s) as string,
      })
      await store.close()
      const told = postgresStore({ url: `${server.url}?allowUnsafe=true` })
      await told.open()
      expect(await told.add([aLetter()])).toEqual([{ kind: 'added' }])
      expect(await told.health()).toMatchObject({ ok: false, checks: { fsync: 'off' } })
      await told.close()
    } finally {
      await server.remove()
    }
  })
})
