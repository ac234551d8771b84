import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import type { NewLetter } from './insert.ts'
import { laneLock, lock } from './locks.ts'
import { isDone } from './rows.ts'
import { joinIds, joinTexts, splitTexts, toText } from './text.ts'

/* Lanes are escaped here: see `text.ts`. */

export interface Lane {
  queue: number
  lane: string
}

const lanes = `(SELECT DISTINCT queue, lane FROM unnest($1::int[], $2::text[]) AS u(queue, lane)) AS lanes`

/** Whether a letter of the lane is in flight. */
const busy = `EXISTS (SELECT 1 FROM @letters b WHERE b.queue = lanes.queue AND b.lane = lanes.lane AND b.wait < 2 AND b.state = 1)`

/**
 * Holds a claimable letter that is no longer the first of its lane, or whose lane is in flight. A
 * claim in progress has precedence.
 */
const holdBack = `UPDATE @letters l SET wait = 2 FROM ${lanes}
  WHERE l.queue = lanes.queue AND l.lane = lanes.lane AND l.wait < 2 AND l.wait = 0 AND (${busy} OR EXISTS (
    SELECT 1 FROM @letters o WHERE o.queue = lanes.queue AND o.lane = lanes.lane AND o.state < 2 AND o.id < l.id))`

/** Releases the first letter of a lane that is not in flight, unless it depends on others. */
const freeHeads = `UPDATE @letters l SET wait = 0
  FROM ${lanes} CROSS JOIN LATERAL (
    SELECT h.id FROM @letters h WHERE h.queue = lanes.queue AND h.lane = lanes.lane AND h.state < 2 ORDER BY h.id LIMIT 1) AS head
  WHERE l.id = head.id AND l.state = 0 AND l.wait = 2 AND NOT ${busy} AND l.unmet = 0
  RETURNING l.due_at`

/**
 * Recomputes which letters of these lanes are claimable; the lane locks must be held. Returns the
 * due times of released letters.
 */
export async function settleLanes(tx: Transaction, changed: readonly Lane[]): Promise<number[]> {
  if (changed.length === 0) return []
  const values = [changed.map(({ queue }) => queue), changed.map(({ lane }) => lane)]
  void tx.rows(holdBack, values)
  return (await tx.rows(freeHeads, values)).map(([due]) => due as number)
}

const lanesOfDependents = `SELECT DISTINCT l.queue, l.lane FROM @deps d JOIN @letters l ON l.id = d.letter
  WHERE d.id = ANY($1::text[]) AND l.lane IS NOT NULL`

/**
 * Of two concurrent resolves, the second waits for the row of the letter that depends on both, and
 * then counts from what the first left.
 */
const release = `WITH met AS (DELETE FROM @deps WHERE id = ANY($1::text[]) RETURNING letter),
  x AS (SELECT letter AS id, count(*)::int AS n FROM met GROUP BY 1 ORDER BY 1)
  UPDATE @letters l SET unmet = l.unmet - x.n,
    wait = CASE WHEN l.state = 0 AND l.wait = 2 AND l.lane IS NULL AND l.unmet = x.n THEN 0 ELSE l.wait END
  FROM x WHERE l.id = x.id RETURNING CASE WHEN l.wait = 0 THEN l.due_at END`

/**
 * Removes the dependencies on resolved letters, whose rows must be locked. Returns the lanes to
 * settle, and the due times of released letters.
 */
export async function releaseDependents(
  tx: Transaction,
  connection: PostgresConnection,
  resolved: readonly string[],
): Promise<{ lanes: Lane[]; dueTimes: (number | null)[] }> {
  if (resolved.length === 0) return { lanes: [], dueTimes: [] }
  const ids = [joinIds(resolved)]
  const found = (await tx.rows(lanesOfDependents, ids)) as [number, string][]
  const inLanes = found.map(([queue, lane]) => ({ queue, lane }))
  await lock(
    tx,
    connection,
    inLanes.map(({ queue, lane }) => laneLock(queue, lane)),
  )
  const freed = await tx.rows(release, ids)
  return { lanes: inLanes, dueTimes: freed.map(([due]) => due as number | null) }
}

/** A new letter, with the ids of the letters that it still depends on. */
export interface Waiting {
  letter: NewLetter
  unmet: readonly string[]
}

const lockDependencies = `SELECT l.id, ${isDone('l')} FROM @letters l WHERE l.id = ANY($1::uuid[]) ORDER BY l.id FOR UPDATE`
const setDepended =
  'UPDATE @letters SET depended = true WHERE id = ANY($1::uuid[]) AND NOT depended'

/** A body without origin stands for a letter that others wait for and that is not stored yet. */
const expectLetters = `INSERT INTO @bodies (id, origin, origin_crc, bytes_crc)
  SELECT id, '', 0, 0 FROM unnest($1::uuid[]) AS x(id) ORDER BY id ON CONFLICT DO NOTHING`
/** Uses `letters` first, as every transaction does: see `excludeOthers` in `partitions.ts`. */
const takeExpected = `WITH l AS (SELECT FROM @letters WHERE false)
  DELETE FROM @bodies WHERE id = ANY($1::uuid[]) AND origin = '' RETURNING id`

/**
 * Whether the letters with these ids are resolved; missing ones are left out. What is not resolved
 * cannot be before this transaction ends without releasing what depends on it: an existing letter
 * is locked and marked as depended on, and for a missing one a body is inserted, which whoever
 * stores the letter finds.
 */
export async function expectDependencies(
  tx: Transaction,
  ids: readonly string[],
): Promise<Map<string, boolean>> {
  const found = new Map<string, boolean>()
  const look = async (some: readonly string[]): Promise<void> => {
    const rows = (await tx.rows(lockDependencies, [joinIds(some)])) as [string, boolean][]
    for (const [id, done] of rows) found.set(id, done)
  }
  if (ids.length > 0) await look(ids)
  const missing = ids.filter((id) => !found.has(id))
  if (missing.length > 0) {
    await tx.rows(expectLetters, [joinIds(missing)])
    // The insertion waited for transactions that store these letters.
    await look(missing)
  }
  const open = [...found].filter(([, done]) => !done).map(([id]) => id)
  if (open.length > 0) await tx.rows(setDepended, [joinIds(open)])
  return found
}

/** Of these new letters, those that others wait for. */
export async function takeExpectedIds(
  tx: Transaction,
  fresh: readonly NewLetter[],
): Promise<Set<string>> {
  const rows = await tx.rows(takeExpected, [joinIds(fresh.map(({ id }) => id))])
  return new Set(rows.map(([id]) => id as string))
}

const expectDependedOn = `INSERT INTO @bodies (id, origin, origin_crc, bytes_crc)
  SELECT DISTINCT id::uuid, '', 0, 0 FROM @deps WHERE id = ANY($1::text[]) ON CONFLICT DO NOTHING`

/** After letters were removed: others may still wait for them. */
export function expectAgain(tx: Transaction, removed: readonly string[]): void {
  if (removed.length > 0) void tx.rows(expectDependedOn, [joinIds(removed)])
}

export function addDependencies(tx: Transaction, all: readonly Waiting[]): void {
  const pairs = all.flatMap(({ letter, unmet }) => unmet.map((id) => [letter.id, id]))
  if (pairs.length === 0) return
  void tx.rows(`INSERT INTO @deps SELECT * FROM unnest($1::uuid[], ${splitTexts('$2')})`, [
    joinIds(pairs.map(([letter]) => letter!)),
    joinTexts(pairs, ([, id]) => toText(id!)),
  ])
}
