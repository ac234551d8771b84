import { Client } from 'pg'
import { dumpOf, type RawLetter } from './raw-letter.ts'
import type { Dump } from './verify.ts'

interface RawRow extends RawLetter {
  payload: string | null
}

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
      `SELECT letters.id, name AS queue, state, reason, epoch::float8, retries::float8, max_retries AS "maxRetries", history, payload, bytes
       FROM letters LEFT JOIN queues ON queues.id = queue LEFT JOIN bodies ON bodies.id = letters.id
       ORDER BY letters.id`,
    )
    const encoder = new TextEncoder()
    const letters = rows.map(({ payload, bytes, ...row }) => ({
      ...row,
      bytes: payload === null ? bytes : encoder.encode(payload),
    }))
    return dumpOf(letters, await orphansIn(client))
  } finally {
    await client.end()
  }
}

/** Rows without their letter. A body without origin stands for a letter that others wait for. */
async function orphansIn(client: Client): Promise<string[]> {
  const problems: string[] = []
  const tables = { bodies: `origin <> ''`, tags: 'true', groups: 'true' }
  for (const [table, condition] of Object.entries(tables)) {
    const { rows } = await client.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM ${table} WHERE ${condition} AND id NOT IN (SELECT id FROM letters)`,
    )
    if (rows[0]!.n > 0) problems.push(`${rows[0]!.n} rows of ${table} without a letter`)
  }
  return problems
}
