const statementTimeoutMs = 4500
const idleInTransactionMs = 15_000

/** Settings of all our transactions, whatever the defaults of the server are. */
const settings: readonly string[] = [
  `statement_timeout = ${statementTimeoutMs}`,
  `idle_in_transaction_session_timeout = ${idleInTransactionMs}`,
  'jit = off',
]

/** Applies settings to the current transaction only. */
export const setLocally = (all: readonly string[]): string =>
  all.map((one) => `SET LOCAL ${one};`).join(' ')

/**
 * Applies settings to a session that is ours alone, and has the server plan each prepared statement
 * once.
 */
export const setForSession = (also: readonly string[]): string =>
  [
    `default_transaction_isolation = 'read committed'`,
    'plan_cache_mode = force_generic_plan',
    ...settings,
    ...also,
  ]
    .map((one) => `SET ${one};`)
    .join(' ')

/** Begins a transaction in a session that has the settings. */
export const beginPlainly = 'BEGIN ISOLATION LEVEL READ COMMITTED;'
/** Begins a transaction. Its settings are local, since others may use the connection after it. */
export const begin = `${beginPlainly} ${setLocally(settings)}`
/** Begins a transaction whose reads all see one snapshot. */
export const beginSnapshot = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${setLocally(settings)}`
/** Follows `begin` where the server's default is not to wait for the disk. */
export const durableCommit = 'SET LOCAL synchronous_commit = on;'
