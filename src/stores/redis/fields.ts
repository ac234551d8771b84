import type { Column } from '../rows/columns.ts'

/*
 * A letter is two strings and, for some letters, a hash:
 *
 *   l:ID   the row: numbers and short strings that scripts read and write, and the history
 *   b:ID   the body, which never changes: the checksums of the origin and of the payload (four
 *          bytes each), the origin, the payload
 *   m:ID   other fields, absent if null
 *
 * Strings can be read and written many at once, and cost the server far less than hashes.
 */

/** The cells of a row that are one byte each. Null is -1. */
export const byteCells = [
  'state',
  'priority',
  'category',
  'policy',
  'archived_from',
  'reason',
  'severity',
  'recoverability',
] as const satisfies Column[]

/** The cells that are doubles. Null is -Infinity. */
export const doubleCells = [
  'version',
  'epoch',
  'retries',
  'max_retries',
  'occurrences',
  'replays',
  'backoff_ms',
  'omitted',
  'unmet',
  'captured_at',
  'updated_at',
  'retry_at',
  'settled_at',
  'expires_at',
  'leased_until',
  'budget_since',
  'deferred_since',
] as const satisfies Column[]

/**
 * The lengths of strings: of the worker, of the origin in the body, and of the first strings of the
 * row.
 */
const lengths = ['worker_length', 'origin_length', 'group_length', 'queue_length', 'policy_length']

/**
 * All numbers of a row, in order. Strings follow: the fingerprint, the queue, the policy as JSON,
 * the worker, and the history up to the end. Numbers are little-endian. `parts` is 0 if the letter
 * has no m:ID, 1 if it has, 2 if it has some of `indexedFields`.
 */
const numbers = [...byteCells, 'parts', ...doubleCells, ...lengths]

/** A letter in scripts is a table of these. `kind` is what it shares with others. */
const cells = ['id', 'kind', 'worker', 'history', ...numbers]

/** The index of a cell in the table of a letter. */
export const cell: { readonly [name: string]: number } = Object.fromEntries(
  cells.map((name, index) => [name, index + 1]),
)

/** The format of all numbers, for the library `struct` of scripts. */
export const rowFormat = `<${'b'.repeat(byteCells.length + 1)}${'d'.repeat(doubleCells.length)}${'I4'.repeat(lengths.length)}`
/** Positions of numbers in a row, from 0. */
export const partsAt = byteCells.length
export const doublesAt = partsAt + 1
export const lengthsAt = doublesAt + 8 * doubleCells.length
/** The lengths of the first strings are right before them. */
export const kindAt = lengthsAt + 8
export const headerLength = kindAt + 12

/** The bytes before the origin in a body. */
export const originAt = 8

/** How arguments of scripts write a null. */
export const nullArgument = '-'

/** Columns with a field in m:ID. */
export const fieldOfColumn: { readonly [K in Column]?: string } = {
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

/** Fields that indexes need: tags, lane, dedupeKey, tenant, source. */
export const indexedFields = ['tg', 'la', 'dk', 'te', 'so']

/** The fields of a letter in a list. */
export const summaryFields = 'tj hd md f rv ed la te'.split(' ')

/** The fields of a whole letter: `eb` has the bytes of an edit. */
export const wholeFields = [...summaryFields, 'eb']

/** The position of each field in a reply, from 0. */
export const position = Object.fromEntries(
  wholeFields.map((name, index) => [name, index]),
) as Readonly<Record<string, number>>
