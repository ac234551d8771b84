export type SqlValue = null | number | string | Uint8Array

/**
 * The columns of a letter that can change, in the order in which rows are written and read. Times
 * are milliseconds, enumerations are codes (see `codes.ts`), `json` columns are null when empty.
 *
 * `wait` and `due_at` are derived: why and until when the letter waits. `unmet` is the number of
 * letters that it still depends on. The columns that never change are at the end.
 */
export const columns = [
  'state',
  'priority',
  'category',
  'severity',
  'recoverability',
  'policy',
  'reason',
  'archived_from',
  'version',
  'epoch',
  'retries',
  'max_retries',
  'occurrences',
  'replays',
  'backoff_ms',
  'updated_at',
  'retry_at',
  'settled_at',
  'expires_at',
  'budget_since',
  'deferred_since',
  'wait',
  'due_at',
  'worker',
  'leased_until',
  'fingerprint',
  'omitted',
  'unmet',
  'policy_json',
  'tags',
  'headers',
  'metadata',
  'failure',
  'review',
  'edit',
  'history',
  'id',
  'captured_at',
  'lane',
  'tenant',
  'source_id',
  'dedupe',
] as const

export type Column = (typeof columns)[number]

/** The position of each column in a row. */
export const at = Object.fromEntries(columns.map((name, index) => [name, index])) as {
  readonly [K in Column]: number
}

/** The values of a row, in the order of `columns`. */
export type Row = SqlValue[]

/** What never changes after capture, stored apart from the row. */
export interface Body {
  /** The fields of `OriginKey` that are no columns, as JSON. */
  origin: string
  originCrc: number
  bytes: Uint8Array
  bytesCrc: number
}
