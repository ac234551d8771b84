import type { Row } from '../rows/row.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { toText } from './text.ts'

/** A row to write, with its wait state and due time. */
export interface RowUpdate {
  row: Row
  /** The fields without a column; null if unchanged, so that they are not sent. */
  rest: string | null
  size: number
  wait: number | null
  due: number | null
}

type Column = [column: string, type: string, value: (placed: RowUpdate) => unknown]

const text = (value: string | null): string | null => (value === null ? null : toText(value))

/**
 * The columns that a change may set. Setting a column to its current value costs nothing: Postgres
 * compares values.
 */
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
/** The ids are given twice: with partitions by month, the plan then reads only their months. */
const update = `UPDATE @letters l SET ${set.join(', ')}
  FROM unnest(${columns.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')})
    AS u(${columns.map(([column]) => column).join(', ')})
  WHERE l.id = u.id AND l.id = ANY($1::text[])`

/** Writes rows, which must be locked. */
export function updateLetters(tx: Transaction, all: readonly RowUpdate[]): void {
  if (all.length === 0) return
  void tx.rows(
    update,
    columns.map(([, , value]) => all.map((placed) => value(placed))),
  )
}
