import type { Row } from '../rows/row.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { toText } from './text.ts'

/** A row as it is written, with where it waits and until when. */
export interface Placed {
  row: Row
  /** The fields without a column; null where they stay as they are, so that they need not travel. */
  rest: string | null
  size: number
  wait: number | null
  due: number | null
}

type Column = [column: string, type: string, value: (placed: Placed) => unknown]

const text = (value: string | null): string | null => (value === null ? null : toText(value))

/** All that a change may set. Columns that get the value they have cost nothing: Postgres looks at values, not at names. */
const columns: Column[] = [
  ['id', 'text', ({ row }) => toText(row.id)],
  ['state', 'smallint', ({ row }) => row.state],
  ['priority', 'smallint', ({ row }) => row.priority],
  ['category', 'smallint', ({ row }) => row.category],
  ['policy', 'smallint', ({ row }) => row.policy],
  ['reason', 'text', ({ row }) => text(row.reason)],
  ['fingerprint', 'text', ({ row }) => toText(row.fingerprint)],
  ['version', 'bigint', ({ row }) => row.version],
  ['epoch', 'bigint', ({ row }) => row.epoch],
  ['retries', 'bigint', ({ row }) => row.retries],
  ['backoff_ms', 'float8', ({ row }) => row.backoffMs],
  ['retry_at', 'text', ({ row }) => row.retryAt],
  ['settled_at', 'text', ({ row }) => row.settledAt],
  ['expires_at', 'text', ({ row }) => row.expiresAt],
  ['updated_at', 'text', ({ row }) => row.updatedAt],
  ['worker', 'text', ({ row }) => text(row.worker)],
  ['leased_until', 'text', ({ row }) => row.leasedUntil],
  ['tagged', 'smallint', ({ row }) => row.tagged],
  ['entries', 'bigint', ({ row }) => row.entries],
  ['omitted', 'bigint', ({ row }) => row.omitted],
  ['rest', 'text', ({ rest }) => rest],
  ['crc', 'bigint', ({ row }) => row.crc],
  ['size', 'bigint', ({ size }) => size],
  ['wait', 'smallint', ({ wait }) => wait],
  ['due_at', 'bigint', ({ due }) => due],
]

const set = columns
  .slice(1)
  .map(([column]) =>
    column === 'rest' ? 'rest = coalesce(u.rest, l.rest)' : `${column} = u.${column}`,
  )
/** The ids are named twice: where letters are kept by month, the plan then has their months alone. */
const update = `UPDATE @letters l SET ${set.join(', ')}
  FROM unnest(${columns.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')})
    AS u(${columns.map(([column]) => column).join(', ')})
  WHERE l.id = u.id AND l.id = ANY($1::text[])`

/** Writes rows that are locked. */
export function updateLetters(tx: Transaction, all: readonly Placed[]): void {
  if (all.length === 0) return
  void tx.rows(
    update,
    columns.map(([, , value]) => all.map((placed) => value(placed))),
  )
}
