import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../../scripts/servers/machine.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { resolve } from '../../src/letter/moves.ts'
import type { Store } from '../../src/store.ts'
import { aLetter } from '../../src/testing/index.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privatePostgres } from '../servers/private.ts'
import { openStore } from './backends.ts'
import { outcomeOf, retryUntilAnswered } from './outcome.ts'

describe.skipIf(lacksPrivate.postgres())('a PostgreSQL in an unusual state', () => {
  let server: PrivateServer
  let client: Client
  let store: Store
  beforeAll(async () => {
    server = await privatePostgres()
    client = new Client({ connectionString: server.url })
    await client.connect()
  }, 60_000)
  afterAll(async () => {
    await client?.end()
    await server?.remove()
  })
  beforeEach(async () => {
    store = await openStore(server.url)
  })
  afterEach(() => store.close())

  const set = async (value: 'on' | 'off'): Promise<void> => {
    await client.query(`alter system set default_transaction_read_only = ${value}`)
    await client.query('select pg_reload_conf()')
    const isSet = async (): Promise<boolean> => {
      const { rows } = await client.query('show default_transaction_read_only')
      return rows[0].default_transaction_read_only === value
    }
    await until(`the server did not turn ${value}`, isSet, 10)
  }

  it('refuses captures, claims, renewals and results while read-only, still reads, and recovers afterwards', async () => {
    const letter = aLetter({ id: systemClock.id() })
    await store.add([letter])
    const claim = () => store.claim({ worker: 'w', limit: 1, leaseMs: 60_000 })
    const [held] = (await claim()).letters
    const settle = () => {
      const by = { at: held!.updatedAt, actor: 'w', guard: 'epoch' } as const
      return store.apply([resolve(held!, by)])
    }
    await set('on')
    const calls = [
      () => store.add([aLetter({ id: systemClock.id() })]),
      claim,
      () => store.renew([{ id: letter.id, epoch: held!.epoch }], 60_000),
      settle,
    ]
    // A session sees the change before its next statement at the latest.
    for (const call of calls) {
      const refused = async (): Promise<boolean> => {
        const { error } = await outcomeOf<unknown>(call())
        if (!error) return false
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        expect(error.message).toMatch(/read-only/)
        return true
      }
      await until('a call was not refused', refused, 10)
    }
    expect((await store.get([letter.id]))[0]).toMatchObject({ lease: held!.lease })
    await set('off')
    expect((await retryUntilAnswered(settle)).value).toEqual(['written'])
  })

  it('refuses calls when its schema is gone, and never recreates the schema', async () => {
    await store.add([aLetter({ id: systemClock.id() })])
    await client.query('drop schema redrive cascade')
    const { error } = await outcomeOf(store.add([aLetter({ id: systemClock.id() })]))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect((await store.health()).ok).toBe(false)
    const { rows } = await client.query(
      `select 1 from information_schema.schemata where schema_name = 'redrive'`,
    )
    expect(rows).toEqual([])
  })
})
