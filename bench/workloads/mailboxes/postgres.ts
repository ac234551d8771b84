import { Pool } from 'pg'
import { postgresMailbox } from '../../../src/mailboxes/postgres/postgres.ts'
import { postgresPlace } from '../../../test/servers/places.ts'
import { backend } from '../../../test/servers/servers.ts'
import { body, runWorkers, type Pair, type Raw } from './pair.ts'

/** Connections of both: the default of a mailbox. */
const poolSize = 4

export async function open(): Promise<Pair> {
  const { url } = backend('postgres')
  const [place, rawPlace] = [postgresPlace(url), postgresPlace(url)]
  const mailbox = postgresMailbox({ url, schema: place.name, name: 'bench', poolSize })
  const pool = new Pool({ connectionString: url, max: poolSize })
  const close = async (): Promise<void> => {
    await Promise.all([mailbox.close(), pool.end()])
    await Promise.all([place.clear(), rawPlace.clear()])
  }
  try {
    await mailbox.open()
    return { mailbox, ...(await rawOn(pool, rawPlace.name)), close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * A table with an index of visible messages, and a pool with as many connections as the mailbox.
 * Messages are inserted by one statement, claimed with SKIP LOCKED by a second, and deleted by a
 * third; each statement is a commit. Batches are split over the connections. A mailbox does more:
 * deduplication by id, retention, notifications, and receipts that expire.
 */
async function rawOn(pool: Pool, schema: string): Promise<{ raw: Raw; batched: Raw }> {
  await pool.query(`CREATE SCHEMA ${schema}`)
  await pool.query(
    `CREATE TABLE ${schema}.mail (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     visible_at timestamptz NOT NULL DEFAULT now(), deliveries int NOT NULL DEFAULT 0, body bytea NOT NULL)`,
  )
  await pool.query(`CREATE INDEX ON ${schema}.mail (visible_at)`)
  const insert = `INSERT INTO ${schema}.mail (body) SELECT unnest($1::bytea[])`
  // Materialized: otherwise the server may run the subquery again and claim too many.
  const claim = `WITH first AS MATERIALIZED (
      SELECT seq FROM ${schema}.mail WHERE visible_at <= now() ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED)
    UPDATE ${schema}.mail AS mail SET visible_at = now() + interval '30 seconds', deliveries = deliveries + 1
    FROM first WHERE mail.seq = first.seq RETURNING mail.seq, body`
  const remove = `DELETE FROM ${schema}.mail WHERE seq = ANY($1::bigint[])`
  const trip = async (count: number): Promise<void> => {
    const bodies = Array.from({ length: count }, body)
    await pool.query({ name: 'insert', text: insert, values: [bodies] })
    for (let left = count; left > 0;) {
      const { rows } = await pool.query<{ seq: string }>({
        name: 'claim',
        text: claim,
        values: [left],
      })
      await pool.query({ name: 'remove', text: remove, values: [rows.map(({ seq }) => seq)] })
      left -= rows.length
    }
  }
  return {
    raw: (messages, inFlight) => runWorkers(messages, inFlight, () => trip(1)),
    batched: (messages, inFlight) => {
      const count = inFlight / poolSize
      return runWorkers(Math.ceil(messages / count), poolSize, () => trip(count))
    },
  }
}
