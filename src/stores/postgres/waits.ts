import { archived, resolved } from '../rows/codes.ts'
import { restOf } from '../rows/rest.ts'
import type { Row } from '../rows/row.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { laneLock, lock, lockMissing } from './locks.ts'

/* Ids and lanes are escaped here: see `text.ts`. */

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
  WHERE l.id = head.id AND l.state = 0 AND l.wait = 2 AND NOT ${busy}
    AND NOT EXISTS (SELECT 1 FROM @deps d WHERE d.letter = l.id)
  RETURNING l.due_at`

/**
 * Recomputes which letters of these lanes are claimable; the lane locks must be held. Returns the
 * due times of released letters.
 */
export function settleLanes(tx: Transaction, changed: readonly Lane[]): Promise<Cells[]> {
  if (changed.length === 0) return Promise.resolve([])
  const values = [changed.map(({ queue }) => queue), changed.map(({ lane }) => lane)]
  void tx.rows(holdBack, values)
  return tx.rows(freeHeads, values)
}

const dependentsOf = `SELECT DISTINCT l.id, l.queue, l.lane FROM @deps d JOIN @letters l ON l.id = d.letter
  WHERE d.id = ANY($1::text[]) ORDER BY l.id`
const lockRows = 'SELECT id FROM @letters WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE'
const freeDependents = `UPDATE @letters l SET wait = 0
  WHERE l.id = ANY($1::text[]) AND l.state = 0 AND l.wait = 2 AND l.lane IS NULL
    AND NOT EXISTS (SELECT 1 FROM @deps d WHERE d.letter = l.id)
  RETURNING l.due_at`

/** Releases the letters that wait for nothing. Returns their due times. */
export function releaseUnblocked(tx: Transaction, ids: readonly string[]): Promise<Cells[]> {
  return ids.length === 0 ? Promise.resolve([]) : tx.rows(freeDependents, [ids])
}

/** The letters that depend on the given ids: to be queried once their rows are locked. */
export function findDependents(tx: Transaction, ids: readonly string[]): Promise<Cells[]> {
  return ids.length === 0 ? Promise.resolve([]) : tx.rows(dependentsOf, [ids])
}

/**
 * Removes the dependencies on resolved letters. `waiting` is the result of `findDependents`.
 * Returns the lanes to settle, and the due times of released letters.
 */
export async function releaseDependents(
  tx: Transaction,
  connection: PostgresConnection,
  ids: readonly string[],
  waiting: readonly Cells[],
): Promise<{ lanes: Lane[]; freed: Promise<Cells[]> }> {
  if (waiting.length === 0) return { lanes: [], freed: Promise.resolve([]) }
  const inLanes = (waiting as [string, number, string | null][]).flatMap(([, queue, lane]) =>
    lane === null ? [] : [{ queue, lane }],
  )
  await lock(
    tx,
    connection,
    inLanes.map(({ queue, lane }) => laneLock(queue, lane)),
  )
  const letters = waiting.map(([id]) => id)
  // Locked, so that of two concurrent resolves one releases the letter that waits for both.
  void tx.rows(lockRows, [letters])
  void tx.rows('DELETE FROM @deps WHERE id = ANY($1::text[])', [ids])
  return { lanes: inLanes, freed: tx.rows(freeDependents, [letters]) }
}

/** A dependency of a new letter. */
export interface Dependency {
  letter: string
  id: string
}

const findStates = 'SELECT id, state, rest FROM @letters WHERE id = ANY($1::text[]) ORDER BY id'

/** To be called before other locks are taken, if letters with these ids will be waited for. */
export async function lockForWaiting(
  tx: Transaction,
  connection: PostgresConnection,
  ids: readonly string[],
): Promise<void> {
  const rows = await tx.rows('SELECT count(*)::int FROM @letters WHERE id = ANY($1::text[])', [ids])
  if (rows[0]![0] !== new Set(ids).size) await lockMissing(tx, connection, 'wait')
}

/**
 * The existing letters of these, and whether each is resolved. The others cannot be resolved before
 * this transaction ends: existing ones are locked, and missing ones are excluded by
 * `lockForWaiting`.
 */
export async function readResolved(
  tx: Transaction,
  ids: readonly string[],
): Promise<Map<string, boolean>> {
  const rows = (await tx.rows(`${findStates} FOR SHARE`, [ids])) as [string, number, string][]
  return new Map(rows.map(([id, state, rest]) => [id, isResolved(state, rest)]))
}

/** Resolved, or archived from that state. */
export function isResolved(state: number, rest: string): boolean {
  if (state !== archived) return state === resolved
  return restOf({ rest } as Row)?.archivedFrom === 'resolved'
}

export function addDependencies(tx: Transaction, dependencies: readonly Dependency[]): void {
  if (dependencies.length === 0) return
  void tx.rows(
    'INSERT INTO @deps SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING',
    [dependencies.map(({ letter }) => letter), dependencies.map(({ id }) => id)],
  )
}
