import { lapse } from '../../letter/moves.ts'
import { ageingMs } from '../../letter/order.ts'
import type { ClaimRequest } from '../../store.ts'
import { actionCode } from '../rows/codes.ts'
import type { LoadedLetter } from '../rows/form.ts'
import { tagsOf } from '../rows/rest.ts'
import type { Row } from '../rows/row.ts'
import { isoOf, nowMs, wholeMs, type StoreContext } from './context.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import {
  bodyColumns,
  bodyTables,
  entryColumns,
  entryOf,
  entryWidth,
  keptOf,
  type Entry,
} from './rows.ts'
import { fromText, toText } from './text.ts'
import { WriteSet } from './write-set.ts'

const claimed = actionCode('claim')

/** Limits of one claim, in letters and payload bytes, to bound memory. */
const maxClaimLetters = 1000
const maxClaimBytes = 64 * 2 ** 20

/**
 * How many candidates a claim reads beyond its limit, since other claims may hold the first ones:
 * some spare candidates at first, then four times as many, and so on.
 */
const spareHeads = 64
const widenings = [1, 4, 16, 64]

/** Selects queues by number: $1 the included queues or null, $2 the excluded ones. */
const ranges = `@ranges r CROSS JOIN (VALUES (0::smallint), (1::smallint)) AS w(wait)`
const asked = `($1::int[] IS NULL OR r.queue = ANY($1::int[])) AND r.queue <> ALL($2::int[])`

/**
 * The first letters of every range, merged in claim order, are read without locks; the claim takes
 * the first of them that are not locked. At most `limit` rows are locked: each row is locked by its
 * own lookup, and the limit ends the lookups.
 */
const claimDue = `WITH t AS MATERIALIZED (SELECT ${nowMs('$3')} AS ms),
  heads AS MATERIALIZED (
    SELECT h.id, h.score, h.size FROM t, ${ranges} CROSS JOIN LATERAL (
      SELECT l.id, l.due_at + r.priority::bigint * ${ageingMs} AS score, l.size FROM @letters l
      WHERE l.queue = r.queue AND l.wait = w.wait AND l.priority = r.priority AND l.due_at <= t.ms
      ORDER BY l.due_at, l.id LIMIT $4) AS h
    WHERE ${asked}),
  best AS MATERIALIZED (
    SELECT id, score FROM (SELECT id, score, sum(size) OVER (ORDER BY score, id) - size AS before FROM heads) AS s
    WHERE before <= ${maxClaimBytes} ORDER BY score, id),
  due AS MATERIALIZED (
    SELECT x.*, b.score FROM best b CROSS JOIN t CROSS JOIN LATERAL (
      SELECT l.id, l.state AS old_state, l.worker AS old_worker, l.leased_until AS old_until FROM @letters l
      WHERE l.id = b.id AND l.wait < 2 AND l.due_at <= t.ms LIMIT 1 FOR UPDATE SKIP LOCKED) AS x
    LIMIT $5),
  l AS (
    UPDATE @letters u SET state = 1, epoch = u.epoch + 1, retries = u.retries + 1, version = u.version + 1,
      retry_at = NULL, worker = $6, leased_until = ${isoOf('t.ms + $7::bigint')}, updated_at = ${isoOf('t.ms')},
      wait = 1, due_at = t.ms + $7::bigint
    FROM t WHERE u.id = ANY (ARRAY(SELECT id FROM due))
    RETURNING u.*)
  SELECT ${entryColumns('l')}, c.n, due.old_state, due.old_worker, due.old_until, ${bodyColumns('whole')}
  FROM (SELECT count(*)::int AS n FROM heads) AS c LEFT JOIN (due JOIN l ON l.id = due.id) ON true ${bodyTables('whole', 'ARRAY(SELECT id FROM due)')}
  ORDER BY due.score, due.id`

const nextDue = `SELECT min(h.due_at) FROM ${ranges} CROSS JOIN LATERAL (
    SELECT l.due_at FROM @letters l
    WHERE l.queue = r.queue AND l.wait = w.wait AND l.priority = r.priority AND l.due_at IS NOT NULL
    ORDER BY l.due_at, l.id LIMIT 1) AS h
  WHERE ${asked}`

export interface Claimed {
  letters: LoadedLetter[]
  nextDueMs: Promise<number | undefined>
}

/** The numbers of the included queues, null for all, and of the excluded ones. */
export type Queues = [asked: number[] | null, except: number[]]

export async function queuesOf(
  context: StoreContext,
  { queues, except }: ClaimRequest,
): Promise<Queues> {
  const numbers = await context.queues.find([...(queues ?? []), ...(except ?? [])])
  const some = (names: readonly string[]): number[] =>
    names.flatMap((name) => (numbers.has(name) ? [numbers.get(name)!] : []))
  return [queues ? some(queues) : null, some(except ?? [])]
}

export async function claimIn(
  context: StoreContext,
  tx: Transaction,
  request: ClaimRequest,
  queues: Queues,
  slot: number,
): Promise<Claimed> {
  const limit = Math.min(request.limit, maxClaimLetters)
  const writes = new WriteSet()
  const taken: Taken[] = []
  for (const widening of limit > 0 ? widenings : []) {
    const left = limit - taken.length
    const heads = (left + spareHeads) * widening
    const rows = await tx.rows(claimDue, [
      ...queues,
      context.now(),
      heads,
      left,
      toText(request.worker),
      wholeMs(request.leaseMs),
    ])
    const seen = rows[0]![entryWidth] as number
    const got = rows.filter(([id]) => id !== null).map(takenOf)
    taken.push(...got)
    // There can be more only if another claim holds letters that this one read.
    const more = got.length < left && got.length < seen && seen >= heads
    if (!more || bytesOf(taken) > maxClaimBytes) break
  }
  const nameOf = await context.queues.names(
    taken.map(({ entry }) => entry.queue),
    tx,
  )
  const letters = taken.map((one) => recordClaim(writes, one, nameOf(one.entry.queue)))
  const next = letters.length < request.limit ? tx.rows(nextDue, queues) : Promise.resolve([[null]])
  await writes.flush(context, tx, slot, [])
  const nextDueMs = next.then((rows) => (rows[0]![0] as number | null) ?? undefined)
  // If this answer is lost but the commit succeeds, the claim stands, without the next due time.
  return { letters, nextDueMs: nextDueMs.catch(() => undefined) }
}

/** A letter that was just claimed, with the values that the claim replaced. */
interface Taken {
  entry: Entry
  oldState: number
  oldWorker: string | null
  oldUntil: string | null
  body: Cells
}

function takenOf(cells: Cells): Taken {
  const [, oldState, worker, oldUntil, ...body] = cells.slice(entryWidth) as [
    number,
    number,
    string | null,
    string | null,
    ...Cells,
  ]
  const oldWorker = worker === null ? null : fromText(worker)
  return { entry: entryOf(cells), oldState, oldWorker, oldUntil, body }
}

const bytesOf = (taken: readonly Taken[]): number =>
  taken.reduce((sum, { entry }) => sum + entry.size, 0)

/**
 * Counts a claim, and records in the history that the previous lease lapsed: see `claim` in
 * `letter/moves.ts`.
 */
function recordClaim(writes: WriteSet, taken: Taken, queue: string): LoadedLetter {
  const { entry, oldState, oldWorker, oldUntil, body } = taken
  const { row } = entry
  const tags = tagsOf(row)
  writes.deltas.count(entry.queue, { ...row, state: oldState }, tags, -1)
  writes.deltas.count(entry.queue, row, tags, 1)
  writes.deltas.total(entry.queue, claimed, row)
  if (oldWorker === null || oldUntil === null) return keptOf(entry, queue, body)
  const old = { worker: oldWorker, epoch: row.epoch - 1, expiresAt: oldUntil }
  const line = lapse(old, row.updatedAt)
  const next: Row = { ...row }
  writes.remember(next, line)
  writes.rewrite(entry, next)
  const kept = keptOf({ ...entry, row: next }, queue, body)
  kept[6] = [...kept[6], JSON.stringify(line)].slice(next.omitted - row.omitted)
  return kept
}
