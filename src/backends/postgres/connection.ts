import { Pool, types as pgTypes, type ClientConfig, type CustomTypesConfig } from 'pg'

const connectTimeoutMs = 4000
/** Nothing waits longer than this for an answer, so that a dead network is noticed. */
export const answerTimeoutMs = 5000
const statementTimeoutMs = 4500
const idleInTransactionMs = 15_000

/** What every transaction of ours goes by, whatever the server has for others. */
export const settings: readonly string[] = [
  `statement_timeout = ${statementTimeoutMs}`,
  `idle_in_transaction_session_timeout = ${idleInTransactionMs}`,
  'jit = off',
]
/** Settings for one transaction only. */
export const locally = (all: readonly string[]): string =>
  all.map((one) => `SET LOCAL ${one};`).join(' ')

/** How a transaction begins. Settings are for it only, since a pooler gives the connection to others afterwards. */
export const begin = `BEGIN ISOLATION LEVEL READ COMMITTED; ${locally(settings)}`
/** How reads begin that are all to see the same moment. */
export const beginSnapshot = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${locally(settings)}`
/** What follows where the server's default is not to wait for the disk. */
export const durably = 'SET LOCAL synchronous_commit = on;'

/** Numbers come as numbers, also the long ones: what is kept in them is far below 2^53. Bytes own their buffer. */
const bytesIn = pgTypes.getTypeParser(pgTypes.builtins.BYTEA, 'text') as (text: string) => Buffer
const parsers = new Map<number, (text: string) => unknown>([
  [pgTypes.builtins.INT8, Number],
  [pgTypes.builtins.BYTEA, (text) => new Uint8Array(bytesIn(text))],
])
export const types: CustomTypesConfig = {
  getTypeParser: (oid, format) => (parsers.get(oid) ?? pgTypes.getTypeParser(oid, format)) as never,
}

/** For a `Client` or a `Pool`. */
export function configOf(url: string): ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: answerTimeoutMs,
    keepAlive: true,
    application_name: 'redrive',
  }
}

/** Connections that send what is asked without waiting for the answer to what was asked before. */
export function poolOf(config: ClientConfig, max: number): Pool {
  const options = { ...config, max, pipeline: true, allowExitOnIdle: true }
  const pool = new Pool(options)
  // A connection that dies while it is idle, or after its last answer, has nobody to tell.
  pool.on('error', () => {})
  pool.on('connect', (client) => void client.on('error', () => {}))
  return pool
}
