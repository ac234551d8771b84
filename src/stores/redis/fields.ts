import type { Column } from '../rows/columns.ts'

/*
 * A letter is a hash with one field per column. A field that is null, or has the default below, is
 * absent. `wait` and `due_at` are in the indexes, the id is in the key.
 */

/** Columns that are strings. */
const texts = {
  worker: 'w',
  fingerprint: 'g',
  lane: 'la',
  tenant: 'te',
  source_id: 'so',
  history: 'h',
  policy_json: 'yj',
  tags: 'tj',
  headers: 'hd',
  metadata: 'md',
  failure: 'f',
  review: 'rv',
  edit: 'ed',
} as const

/** Columns that are numbers. */
const numbers = {
  state: 's',
  priority: 'p',
  category: 'c',
  severity: 'sv',
  recoverability: 'rc',
  policy: 'y',
  reason: 'rs',
  archived_from: 'af',
  version: 'v',
  epoch: 'e',
  retries: 'n',
  max_retries: 'mx',
  occurrences: 'oc',
  replays: 'rp',
  backoff_ms: 'bo',
  updated_at: 'u',
  retry_at: 'r',
  settled_at: 'z',
  expires_at: 'x',
  budget_since: 'bs',
  deferred_since: 'ds',
  leased_until: 'l',
  omitted: 'om',
  unmet: 'un',
  captured_at: 't',
} as const

type Named = keyof typeof texts | keyof typeof numbers

/** The field of a column. Columns without one are stored elsewhere. */
export const fieldNames: { readonly [K in Column]?: string } = { ...texts, ...numbers }

export const textColumns = Object.keys(texts) as (keyof typeof texts)[]
export const numberColumns = Object.keys(numbers) as (keyof typeof numbers)[]

/** The values of absent fields. Default: null. */
export const defaults: { readonly [K in Named]?: number } = {
  epoch: 0,
  retries: 0,
  occurrences: 1,
  replays: 0,
  backoff_ms: 0,
  omitted: 0,
  unmet: 0,
}

/** The fields that scripts read: queue, columns, tags as indexed, hash of the dedupeKey. */
const scriptColumns = [
  ...(['state', 'priority', 'category', 'policy', 'version', 'epoch', 'retries'] as const),
  ...(['backoff_ms', 'retry_at', 'settled_at', 'expires_at', 'worker', 'leased_until'] as const),
  ...(['fingerprint', 'unmet', 'lane', 'archived_from', 'captured_at', 'history'] as const),
  ...(['omitted', 'tenant', 'source_id', 'reason', 'updated_at'] as const),
]
const named: Record<Named, string> = { ...texts, ...numbers }
export const scriptFields = ['q', 'tg', 'dk', ...scriptColumns.map((column) => named[column])]

/** The script fields that are numbers. */
export const numberFields = scriptColumns
  .filter((column) => column in numbers)
  .map((column) => named[column])

const rest = Object.values(named).filter((name) => !scriptFields.includes(name))

/** The fields of a letter in a list: `o` is the origin. */
export const summaryFields = [...scriptFields, ...rest, 'o']

/** The fields of a whole letter: `b` has the captured bytes, `eb` those of an edit. */
export const wholeFields = [...summaryFields, 'b', 'eb']

/** The position of each field in a reply, from 0. */
export const position = Object.fromEntries(
  wholeFields.map((name, index) => [name, index]),
) as Readonly<Record<string, number>>
