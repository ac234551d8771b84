import { Client } from 'pg'
import { systemClock } from '../../src/clock/clock.ts'
import type { Location } from '../location.ts'
import type { RawEngine } from './raw-engine.ts'

const schema = 'redrive_raw'
const items = `${schema}.items`

const create = `DROP SCHEMA IF EXISTS ${schema} CASCADE; CREATE SCHEMA ${schema};
  CREATE TABLE ${items} (id uuid PRIMARY KEY, state smallint NOT NULL, due_at bigint, payload text NOT NULL);
  CREATE INDEX items_due ON ${items} (state, due_at) WHERE due_at IS NOT NULL`

const insert = `INSERT INTO ${items} SELECT id, 0, $2, payload
  FROM json_to_recordset($1::json) AS x(id uuid, payload text)`

const lease = `UPDATE ${items} i SET state = 1, due_at = $1 + 30000 FROM
    (SELECT id FROM ${items} WHERE state = 0 AND due_at <= $1 ORDER BY due_at LIMIT $2
     FOR UPDATE SKIP LOCKED) AS due
  WHERE i.id = due.id RETURNING i.id, i.payload`

const reschedule = `UPDATE ${items} i SET due_at = $1 FROM
    (SELECT id FROM ${items} WHERE state = 0 AND due_at < $1 ORDER BY due_at LIMIT $2
     FOR UPDATE SKIP LOCKED) AS due
  WHERE i.id = due.id RETURNING i.id`

const finish = `UPDATE ${items} SET state = 2, due_at = NULL WHERE id = ANY($1::uuid[]) AND state = 1`

/** A table in Postgres: one prepared statement, and so one commit, for each write. */
export async function openRawPostgres({ at }: Location): Promise<RawEngine> {
  const client = new Client({ connectionString: at })
  await client.connect()
  await client.query(create)
  const query = (
    name: string,
    text: string,
    values: unknown[],
  ): Promise<{ rows: { id: string }[] }> => client.query<{ id: string }>({ name, text, values })
  return {
    add: async (all) => void (await query('add', insert, [JSON.stringify(all), systemClock.now()])),
    drain: async (limit) => {
      const { rows } = await query('lease', lease, [systemClock.now(), limit])
      await query('finish', finish, [rows.map(({ id }) => id)])
      return rows.length
    },
    reschedule: async (limit, dueMs) =>
      (await query('reschedule', reschedule, [dueMs, limit])).rows.length,
    close: async () => {
      await client.query(`DROP SCHEMA ${schema} CASCADE`)
      await client.end()
    },
  }
}
