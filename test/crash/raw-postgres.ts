import { Client } from 'pg'
import type { Dump } from './verify.ts'
import { dumpOfRows, type RawRow } from './raw-row.ts'

/** The tables of the server, read with plain SQL. */
export async function dumpTables(url: string): Promise<Dump> {
  const place = new URL(url)
  const schema = place.searchParams.get('schema') ?? 'redrive'
  place.searchParams.delete('schema')
  const client = new Client({ connectionString: place.href })
  await client.connect()
  try {
    await client.query(`SET search_path TO "${schema}"`)
    const { rows } = await client.query<RawRow>(
      `SELECT letters.id, name AS queue, state, reason, epoch::float8, retries::float8, rest, origin, bytes,
         ARRAY(SELECT entry FROM history WHERE history.id = letters.id ORDER BY n) AS later
       FROM letters LEFT JOIN queues ON queues.id = queue LEFT JOIN bodies ON bodies.id = letters.id
       ORDER BY letters.id`,
    )
    return dumpOfRows(rows, await orphansIn(client))
  } finally {
    await client.end()
  }
}

/** Rows without their letter. */
async function orphansIn(client: Client): Promise<string[]> {
  const problems: string[] = []
  for (const table of ['bodies', 'edits', 'history', 'tags']) {
    const { rows } = await client.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM ${table} WHERE id NOT IN (SELECT id FROM letters)`,
    )
    if (rows[0]!.n > 0) problems.push(`${rows[0]!.n} rows of ${table} without a letter`)
  }
  return problems
}
