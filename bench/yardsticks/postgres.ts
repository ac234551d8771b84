import { Client } from 'pg'
import { systemClock } from '../../src/clock/clock.ts'
import type { PackedLetter } from '../../src/stores/rows/form.ts'
import type { Location } from '../location.ts'
import { rate } from '../harness.ts'
import { sampleRows } from '../sample.ts'

const schema = 'redrive_raw'

/** A table as a queue needs it at least: a key, what is listed and due, and the payload as text. */
const tables = `
  CREATE TABLE ${schema}.letters (
    id uuid PRIMARY KEY, queue int NOT NULL, state smallint NOT NULL, priority smallint NOT NULL,
    epoch int NOT NULL, due_at bigint, history text NOT NULL
  ) WITH (fillfactor = 85);
  CREATE INDEX ON ${schema}.letters (queue, state, id);
  CREATE INDEX ON ${schema}.letters (queue, priority, due_at) WHERE due_at IS NOT NULL;
  CREATE TABLE ${schema}.bodies (id uuid PRIMARY KEY, origin text NOT NULL, payload text NOT NULL);`

/** The lists are sent as strings with a separator, which is the fastest way that was measured. */
const insert = `WITH kept AS (
    INSERT INTO ${schema}.letters SELECT id, 1, 0, 2, 0, $4::bigint, '' FROM unnest($1::uuid[]) AS x(id))
  INSERT INTO ${schema}.bodies
  SELECT * FROM unnest($1::uuid[], string_to_array($2, E'\\x1e'), string_to_array($3, E'\\x1e'))`

/**
 * Throughput of Postgres alone: a bare table with the payloads and origins of letters, one
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
    await client.query(tables)
    const write = (first: number): Promise<unknown> =>
      client.query({ name: 'raw', text: insert, values: valuesOf(batch(rows, first, perWrite)) })
    const warmUp = Math.min(count, 10 * perWrite)
    for (let n = 0; n < warmUp; n += perWrite) await write(n)
    const startMs = performance.now()
    for (let n = 0; n < count; n += perWrite) await write(n)
    return rate(count, performance.now() - startMs)
  } finally {
    await client.query(`DROP SCHEMA ${schema} CASCADE`)
    await client.end()
  }
}

function batch(rows: readonly PackedLetter[], first: number, count: number): PackedLetter[] {
  return Array.from({ length: count }, (_, n) => rows[(first + n) % rows.length]!)
}

function valuesOf(batch: readonly PackedLetter[]): unknown[] {
  const join = (strings: string[]): string => strings.join('\u001e')
  return [
    `{${batch.map(() => systemClock.id()).join()}}`,
    join(batch.map(([, , origin]) => origin)),
    join(batch.map(([, , , , bytes]) => Buffer.from(bytes).toString())),
    systemClock.now(),
  ]
}
