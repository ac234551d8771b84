import { dueOf } from '../rows/due.ts'
import type { HistoryEntry } from '../../letter/letter.ts'
import { archived, isActiveCode, resolved, wait } from '../rows/codes.ts'
import type { PackedLetter } from '../rows/form.ts'
import { rowColumns, type Row } from '../rows/row.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { cellsOf, withChecksum, waitOf } from './rows.ts'
import { fromText, toText } from './text.ts'
import { addDependencies, isResolved } from './waits.ts'
import type { WriteSet } from './write-set.ts'

/** A letter to insert, with derived values. */
export interface NewLetter {
  packed: PackedLetter
  row: Row
  queue: number
  dedupe: Uint8Array | null
  tags: readonly string[]
  /** History entries after the first. */
  later: HistoryEntry[]
  /** Ids of unresolved letters that it depends on. */
  unmet: readonly string[]
  /** The size of the current payload in bytes. */
  size: number
}

const letterTypes =
  'text, smallint, smallint, smallint, smallint, text, text, bigint, bigint, bigint, float8, text, text, text, text, text, text, text, text, text, ' +
  'smallint, smallint, bigint, bigint, text, bigint, int, bytea, smallint, bigint, bigint, text'
const letterColumns = `${rowColumns}, queue, dedupe, wait, due_at, size, source_id`

const types = letterTypes.split(', ')
const unnested = types.map((type, at) => `$${at + 1}::${type}[]`).join(', ')
const more = (n: number): string => `$${types.length + n}`

/**
 * The payloads of all letters are sent as one value and split on the server: an array would be sent
 * as text.
 */
const insert = `WITH fresh AS (
    INSERT INTO @letters (${letterColumns}) SELECT * FROM unnest(${unnested}) ON CONFLICT DO NOTHING RETURNING id),
  kept AS (
    INSERT INTO @bodies (id, origin, origin_crc, bytes_crc, bytes)
    SELECT b.id, b.origin, b.origin_crc, b.bytes_crc, substring(${more(4)}::bytea FROM b.start FOR b.length)
    FROM unnest($1::text[], ${more(1)}::text[], ${more(2)}::bigint[], ${more(3)}::bigint[], ${more(5)}::int[], ${more(6)}::int[])
      AS b(id, origin, origin_crc, bytes_crc, start, length)
    WHERE b.id IN (SELECT id FROM fresh))
  SELECT id FROM fresh`

/** Whether the letter is not claimable yet: its lane is checked once it is stored. */
const isHeld = ({ row, unmet }: NewLetter): boolean => row.lane !== null || unmet.length > 0

/** Inserts letters with their bodies. Returns the ids that did not exist. */
export async function insertLetters(
  tx: Transaction,
  all: readonly NewLetter[],
): Promise<Set<string>> {
  if (all.length === 0) return new Set()
  const rows = all.map((fresh) => {
    const { row, queue, dedupe, size, packed } = fresh
    const source = packed[6]?.source
    return [
      ...cellsOf(withChecksum(row, true)),
      queue,
      dedupe,
      waitOf(row, isHeld(fresh)),
      dueOf(row),
      size,
      source === undefined ? null : toText(source),
    ]
  })
  const bodies = all.map(({ packed }) => packed[4])
  let end = 0
  const starts = bodies.map(({ byteLength }) => (end += byteLength) - byteLength + 1)
  const inserted = await tx.rows(insert, [
    ...types.map((_, at) => rows.map((row) => row[at])),
    all.map(({ packed }) => packed[2]),
    all.map(({ packed }) => packed[3]),
    all.map(({ packed }) => packed[5]),
    Buffer.concat(bodies),
    starts,
    bodies.map(({ byteLength }) => byteLength),
  ])
  return new Set(inserted.map(([id]) => fromText(id as string)))
}

/** Writes tags, history, dependencies and counts of inserted letters. */
export function writeRelated(
  tx: Transaction,
  writes: WriteSet,
  inserted: readonly NewLetter[],
): void {
  for (const fresh of inserted) {
    const { row, queue, tags, later } = fresh
    const first = row.entries - later.length
    for (const [at, entry] of later.entries()) writes.note(row.id, first + at, entry)
    for (const tag of tags) writes.tag(tag, row.id)
    writes.deltas.count(queue, row, tags, 1)
    if (row.lane !== null && isActiveCode(row.state)) writes.changeLane(queue, row.lane)
    if (isResolvedRow(row)) writes.resolve(row.id)
    if (waitOf(row, isHeld(fresh)) === wait.ready) writes.due(dueOf(row))
  }
  addDependencies(
    tx,
    inserted.flatMap(({ row, unmet }) =>
      unmet.map((id) => ({ letter: toText(row.id), id: toText(id) })),
    ),
  )
}

export function isResolvedRow({ state, rest }: Row): boolean {
  return (state === resolved || state === archived) && isResolved(state, rest)
}
