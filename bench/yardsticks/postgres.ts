import { Client } from 'pg'
import { systemClock } from '../../src/clock/clock.ts'
import type { PackedLetter } from '../../src/stores/rows/form.ts'
import { rowColumns } from '../../src/stores/rows/row.ts'
import { toMs } from '../../src/letter/time.ts'
import { migrations } from '../../src/stores/postgres/schema.ts'
import type { Location } from '../location.ts'
import { rate } from '../harness.ts'
import { sampleRows } from '../sample.ts'

const schema = 'redrive_raw'

/**
 * Throughput of Postgres alone: writes the rows of the store into the same tables and indexes, one
 * statement and so one commit per batch, on one connection. No letter is created, checked,
 * classified or counted.
 */
export async function rawPostgres(
  { at }: Location,
  count: number,
  perWrite: number,
): Promise<number> {
  const rows = await sampleRows()
  const client = new Client({ connectionString: at })
  await client.connect()
  try {
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE; CREATE SCHEMA ${schema}`)
    for (const migration of migrations)
      await client.query(`SET search_path TO ${schema}; ${migration.replaceAll('@', `${schema}.`)}`)
    const write = await writer(client)
    const warmUp = Math.min(count, 10 * perWrite)
    for (let n = 0; n < warmUp; n += perWrite) await write(batch(rows, n, perWrite))
    const startMs = performance.now()
    for (let n = 0; n < count; n += perWrite) await write(batch(rows, n, perWrite))
    return rate(count, performance.now() - startMs)
  } finally {
    await client.query(`DROP SCHEMA ${schema} CASCADE`)
    await client.end()
  }
}

function batch(rows: readonly PackedLetter[], first: number, count: number): PackedLetter[] {
  return Array.from({ length: count }, (_, n) => rows[(first + n) % rows.length]!)
}

/** One statement for all letters of a batch and their bodies. */
async function writer(client: Client): Promise<(batch: PackedLetter[]) => Promise<unknown>> {
  const lists = async (table: string, columns: string[], first: number): Promise<string> => {
    const types = await typesOf(client, table)
    return columns.map((column, at) => `$${first + at}::${types.get(column)}[]`).join(', ')
  }
  const letterColumns = [...rowColumns.split(', '), 'queue', 'wait', 'due_at', 'size']
  const bodyColumns = ['id', 'origin', 'origin_crc', 'bytes_crc', 'bytes']
  const text = `WITH inserted AS (
    INSERT INTO ${schema}.letters (${letterColumns.join(', ')})
    SELECT * FROM unnest(${await lists('letters', letterColumns, 1)}))
  INSERT INTO ${schema}.bodies (${bodyColumns.join(', ')})
  SELECT * FROM unnest(${await lists('bodies', bodyColumns, letterColumns.length + 1)})`
  return (batch) => {
    const values = batch.map(([row, , origin, originCrc, bytes, bytesCrc]) => {
      const id = systemClock.id()
      const dueAt = toMs(row[11] as string)
      const letter = [id, ...row.slice(1), 1, 0, dueAt, bytes.length]
      return [...letter, id, origin, originCrc, bytesCrc, bytes]
    })
    return client.query({
      name: 'raw',
      text,
      values: values[0]!.map((_, column) => values.map((row) => row[column])),
    })
  }
}

async function typesOf(client: Client, table: string): Promise<Map<string, string>> {
  const { rows } = await client.query<{ column_name: string; data_type: string }>(
    'SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2',
    [schema, table],
  )
  return new Map(rows.map((row) => [row.column_name, row.data_type]))
}
