import { DatabaseSync } from 'node:sqlite'
import type { Action, Reason, State } from '../../src/letter/letter.ts'
import { shaOf } from './plan.ts'
import type { Stored } from './rules.ts'
import type { Dump } from './verify.ts'

function openFile(url: string): DatabaseSync {
  return new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true, timeout: 5000 })
}

/** Number of unsettled letters in the file. */
export function unsettledRows(url: string): number {
  const db = openFile(url)
  try {
    return db.prepare('SELECT count(*) AS n FROM letters WHERE state < 2').get()?.['n'] as number
  } finally {
    db.close()
  }
}

/** Codes of the tables. Duplicated here on purpose: this reader must not use the product. */
const states: State[] = ['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived']
const reasons: Reason[] = [
  'permanent',
  'malformed',
  'no-handler',
  'never',
  'crash-loop',
  'max-hops',
  'expired',
  'replay-limit',
  'dependency-failed',
  'operator',
  'retries-exhausted',
  'superseded',
]
const actions: Action[] = [
  'capture',
  'occur',
  'claim',
  'resolve',
  'reschedule',
  'exhaust',
  'park',
  'release',
  'retry',
  'review',
  'edit',
  'replay',
  'archive',
  'restore',
  'remove',
  'evict',
  'wake',
]

interface RawRow {
  id: string
  queue: string
  state: number
  reason: number | null
  epoch: number
  retries: number
  maxRetries: number
  /** A line for each entry: a JSON array whose third value is the code of its action. */
  history: string
  bytes: string | Uint8Array | null
}

/** The letters of the file, read with plain SQL. */
export function dumpFile(url: string): Dump {
  const db = openFile(url)
  try {
    const rows = db
      .prepare(
        `SELECT lower(hex(letters.id)) AS id, name AS queue, state, reason, epoch, retries,
           max_retries AS maxRetries, history, bytes
         FROM letters LEFT JOIN queues ON queues.id = queue LEFT JOIN bodies USING (seq)
         ORDER BY letters.id`,
      )
      .all() as unknown as RawRow[]
    const byState: Dump['byState'] = {}
    const byQueue: Dump['byQueue'] = {}
    const letters = rows.map(storedOf)
    for (const { state } of letters) byState[state] = (byState[state] ?? 0) + 1
    for (const { queue } of rows) byQueue[queue] = (byQueue[queue] ?? 0) + 1
    return { letters, byState, byQueue, problems: problemsIn(db) }
  } finally {
    db.close()
  }
}

function storedOf({
  id,
  state,
  reason,
  epoch,
  retries,
  maxRetries,
  history,
  bytes,
}: RawRow): Stored {
  const lines = history.split('\n').map((line) => JSON.parse(line) as number[])
  return {
    id: id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    state: states[state]!,
    ...(reason === null ? {} : { reason: reasons[reason]! }),
    epoch,
    retries,
    maxRetries,
    sha: bytes === null ? 'no body' : shaOf(Buffer.from(bytes as string)),
    actions: lines.map(([, , action]) => actions[action!]!),
  }
}

/** Rows without a letter, and the integrity check of SQLite. */
function problemsIn(db: DatabaseSync): string[] {
  const { n } = db
    .prepare('SELECT count(*) AS n FROM bodies WHERE seq NOT IN (SELECT seq FROM letters)')
    .get() as { n: number }
  const integrity = db
    .prepare('PRAGMA integrity_check')
    .all()
    .map((row) => String(row['integrity_check']))
  return [
    ...(n > 0 ? [`${n} bodies without a letter`] : []),
    ...integrity.filter((line) => line !== 'ok').map((line) => `integrity check: ${line}`),
  ]
}
