import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { addressOf } from '../../../src/backends/postgres/address.ts'
import { PostgresConnection } from '../../../src/backends/postgres/connection.ts'
import { backend } from '../../servers/servers.ts'

const { url, missing } = backend('postgres')
const tenant = { noun: 'store', unavailable: 'STORE_UNAVAILABLE' } as const
const defaults = { schema: 'redrive', poolSize: 2, leastPoolSize: 1 }

const raise = (code: string): string =>
  `DO $$ BEGIN RAISE EXCEPTION 'it fails' USING ERRCODE = '${code}'; END $$`

describe.skipIf(missing)('PostgresConnection', () => {
  let connection: PostgresConnection

  beforeEach(() => {
    const address = addressOf({ url }, defaults)
    connection = new PostgresConnection({ address, clock: systemClock, tenant })
  })
  afterEach(() => connection.close())

  it.each(['40P01', '40001', '55P03'])('starts a transaction over after %s', async (code) => {
    let tries = 0
    const rows = await connection.transaction('hot', (tx) => {
      if (++tries === 1) void tx.rows(raise(code))
      return tx.rows('SELECT 1')
    })
    expect([rows, tries]).toEqual([[[1]], 2])
  })

  it('reports the first failure of a transaction, not that the transaction is aborted', async () => {
    const work = connection.transaction('hot', (tx) => {
      void tx.rows(raise('54000'))
      return tx.rows('SELECT 1')
    })
    await expect(work).rejects.toMatchObject({ code: 'INVALID_INPUT', cause: { code: '54000' } })
  })

  it('uses connections again after a failure, and leaves no transaction open', async () => {
    for (let n = 0; n < 3; n++)
      await expect(connection.execute(raise('22000'))).rejects.toMatchObject({
        code: 'INVALID_INPUT',
      })
    const open = `SELECT count(*) FROM pg_stat_activity WHERE pid = pg_backend_pid() AND xact_start <> query_start`
    expect(await connection.read(open)).toEqual([[0]])
  })
})
