import type { Column } from '../rows/columns.ts'

/*
 * A letter is a hash. Its field `r` is a row of numbers and short strings that scripts read and
 * write: one binary value costs the server and its append-only file far less than many fields. The
 * other fields are opaque to scripts, and absent if null.
 */

/** The cells of a row that are one byte each, by the names that scripts use. Null is -1. */
const byteCells = {
  s: 'state',
  p: 'priority',
  c: 'category',
  y: 'policy',
  af: 'archived_from',
  rs: 'reason',
  sv: 'severity',
  rc: 'recoverability',
} as const

/** The cells that are doubles. Null is NaN. */
const doubleCells = {
  v: 'version',
  e: 'epoch',
  n: 'retries',
  mx: 'max_retries',
  oc: 'occurrences',
  rp: 'replays',
  bo: 'backoff_ms',
  om: 'omitted',
  un: 'unmet',
  t: 'captured_at',
  u: 'updated_at',
  r: 'retry_at',
  z: 'settled_at',
  x: 'expires_at',
  l: 'leased_until',
  bs: 'budget_since',
  ds: 'deferred_since',
} as const

/**
 * A row is these cells, a byte `k`, the lengths of the fingerprint and of the worker (four bytes
 * each), the fingerprint, the worker and the queue. Numbers are little-endian. `k` is 1 if the
 * letter may have one of `extraFields`.
 */
export const byteNames = Object.keys(byteCells) as (keyof typeof byteCells)[]
export const doubleNames = Object.keys(doubleCells) as (keyof typeof doubleCells)[]
export const cells = { ...byteCells, ...doubleCells }

/** The format of the numbers of a row, for the library `struct` of scripts. */
export const rowFormat = `<${'b'.repeat(byteNames.length + 1)}${'d'.repeat(doubleNames.length)}I4I4`
/** The position of the first double, and of the lengths. */
export const doublesAt = byteNames.length + 1
export const lengthsAt = doublesAt + 8 * doubleNames.length
/** The bytes before the strings. */
export const headerLength = lengthsAt + 8

/** How arguments of scripts write a null. */
export const nullArgument = '-'

/** The cell of a column. */
export const cellOfColumn = Object.fromEntries(
  Object.entries(cells).map(([name, column]) => [column, name]),
) as { readonly [K in Column]?: string }

/** Columns with a field of their own. */
export const fieldOfColumn: { readonly [K in Column]?: string } = {
  history: 'h',
  policy_json: 'yj',
  tags: 'tj',
  headers: 'hd',
  metadata: 'md',
  failure: 'f',
  review: 'rv',
  edit: 'ed',
  lane: 'la',
  tenant: 'te',
  source_id: 'so',
}

/** Fields that only some letters have and indexes need: tags, lane, dedupeKey, tenant, source. */
export const extraFields = ['tg', 'la', 'dk', 'te', 'so']

/** The fields of a letter in a list: `o` is the origin. */
export const summaryFields = 'r o yj tj hd md f rv ed la te'.split(' ')

/** The fields of a whole letter: `b` has the captured bytes, `eb` those of an edit. */
export const wholeFields = [...summaryFields, 'h', 'b', 'eb']

/** The position of each field in a reply, from 0. */
export const position = Object.fromEntries(
  wholeFields.map((name, index) => [name, index]),
) as Readonly<Record<string, number>>
