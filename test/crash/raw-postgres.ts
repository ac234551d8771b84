import { Client } from 'pg'
import type { Action, Reason, State } from '../../src/letter/letter.ts'
import { shaOf } from './plan.ts'
import type { Stored } from './rules.ts'
import type { Dump } from './verify.ts'

/* The codes of the tables. Duplicated here on purpose: this reader must not use the product. */
const states: State[] = ['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived']
const actions = (
  'capture occur claim resolve reschedule exhaust park release retry review edit replay archive ' +
  'restore remove evict wake'
).split(' ') as Action[]
const reasons = (
  'permanent malformed no-handler never crash-loop max-hops expired replay-limit ' +
  'dependency-failed operator retries-exhausted superseded'
).split(' ') as Reason[]

interface RawLetter {
  id: string
  queue: string
  state: number
  reason: number | null
  epoch: number
  retries: number
  max_retries: number
  history: string
  payload: string | null
  bytes: Uint8Array | null
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
    const { rows } = await client.query<RawLetter>(
      `SELECT letters.id, name AS queue, state, reason, epoch::float8, retries::float8, max_retries, history, payload, bytes
       FROM letters LEFT JOIN queues ON queues.id = queue LEFT JOIN bodies ON bodies.id = letters.id
       ORDER BY letters.id`,
    )
    const letters = rows.map(storedOf)
    return {
      letters,
      byState: countBy(letters.map(({ state }) => state)),
      byQueue: countBy(rows.map(({ queue }) => queue)),
      problems: await orphansIn(client),
    }
  } finally {
    await client.end()
  }
}

function countBy(keys: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1
  return counts
}

/** Each line of the history is a JSON array with the code of the action in the third place. */
function storedOf(row: RawLetter): Stored {
  const payload = row.payload === null ? row.bytes : new TextEncoder().encode(row.payload)
  const lines = row.history.split('\n').map((line) => JSON.parse(line) as unknown[])
  return {
    id: row.id,
    state: states[row.state]!,
    ...(row.reason === null ? {} : { reason: reasons[row.reason]! }),
    epoch: row.epoch,
    retries: row.retries,
    maxRetries: row.max_retries,
    sha: payload ? shaOf(payload) : 'no body',
    actions: lines.map((line) => actions[line[2] as number]!),
  }
}

/** Rows without their letter. A body without origin stands for a letter that others wait for. */
async function orphansIn(client: Client): Promise<string[]> {
  const problems: string[] = []
  const tables = { bodies: `origin <> ''`, tags: 'true' }
  for (const [table, condition] of Object.entries(tables)) {
    const { rows } = await client.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM ${table} WHERE ${condition} AND id NOT IN (SELECT id FROM letters)`,
    )
    if (rows[0]!.n > 0) problems.push(`${rows[0]!.n} rows of ${table} without a letter`)
  }
  return problems
}
