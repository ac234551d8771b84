import { types as pgTypes, type CustomTypesConfig } from 'pg'

/** The time limit of a statement, so that a dead network is noticed. */
export const answerTimeoutMs = 5000

/** The columns of one row. */
export type Cells = unknown[]

interface Query {
  text: string
  name?: string
  values: unknown[]
  rowMode: 'array'
  types: CustomTypesConfig
  query_timeout: number
}

interface Answer {
  rows: Cells[]
  command?: string
}

/** The part of a `pg` connection that we use: a `Client`, or one that a `Pool` returned. */
export interface Queryable {
  /** For several statements, `pg` returns a list of answers. */
  query(query: Query): Promise<Answer | Answer[]>
}

/** 64-bit integers are returned as numbers: ours are far below 2^53. Bytes own their buffer. */
const parseBytes = pgTypes.getTypeParser(pgTypes.builtins.BYTEA, 'text') as (text: string) => Buffer
const parsers = new Map<number, (text: string) => unknown>([
  [pgTypes.builtins.INT8, Number],
  [pgTypes.builtins.BYTEA, (text) => new Uint8Array(parseBytes(text))],
])
const types: CustomTypesConfig = {
  getTypeParser: (oid, format) => (parsers.get(oid) ?? pgTypes.getTypeParser(oid, format)) as never,
}

/**
 * Sends a query. The answer is that of its last statement; several statements cannot have values.
 */
export async function sendQuery(
  client: Queryable,
  statement: string | { name: string; text: string },
  values: unknown[] = [],
  timeoutMs = answerTimeoutMs,
): Promise<Answer> {
  const named = typeof statement === 'string' ? { text: statement } : statement
  const query: Query = { ...named, values, rowMode: 'array', types, query_timeout: timeoutMs }
  return [await client.query(query)].flat().at(-1)!
}

export async function queryRows(...query: Parameters<typeof sendQuery>): Promise<Cells[]> {
  return (await sendQuery(...query)).rows
}
