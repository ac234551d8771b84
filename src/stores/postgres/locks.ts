import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'

/*
 * Locks by name, held until the end of the transaction, so that they work through a pooler. Every transaction takes those it needs in one
 * statement, in the order of their numbers, and before it locks rows; rows are locked in the order of their ids.
 */

/** Letters of one lane are added, settled and removed one transaction at a time. Claims need no such lock. */
export const laneLock = (queue: number, lane: string): string => `lane ${queue} ${lane}`

/** Captures of one key go one by one. */
export const keyLock = (queue: number, dedupe: Uint8Array): string =>
  `key ${queue} ${Buffer.from(dedupe).toString('hex')}`

/** Captures that may not exceed a number of letters go one by one once it is near. */
export const capacityLock = 'capacity'

const lockNames = `SELECT pg_advisory_xact_lock(number) FROM (
  SELECT DISTINCT hashtextextended($1 || name, 0) AS number FROM unnest($2::text[]) AS names(name) ORDER BY 1) AS numbers`

export async function lock(
  tx: Transaction,
  { schema }: PostgresConnection,
  names: readonly string[],
): Promise<void> {
  if (names.length > 0) await tx.rows(lockNames, [`redrive ${schema} `, names])
}

const lockLanesOf = `SELECT pg_advisory_xact_lock(number) FROM (
  SELECT DISTINCT hashtextextended($1 || 'lane ' || queue || ' ' || lane, 0) AS number
  FROM @letters WHERE id = ANY($2::text[]) AND lane IS NOT NULL ORDER BY 1) AS numbers`

/** Takes the locks of the lanes of these letters. A letter never changes its lane. */
export function lockLanes(
  tx: Transaction,
  { schema }: PostgresConnection,
  ids: readonly string[],
): void {
  void tx.rows(lockLanesOf, [`redrive ${schema} `, ids])
}

/**
 * Whoever waits for letters that are not there yet, and whoever resolves letters, must see each other. The former are few: they
 * keep all of the latter out for the moment.
 */
export function lockMissing(
  tx: Transaction,
  { schema }: PostgresConnection,
  mode: 'wait' | 'resolve',
): Promise<unknown> {
  const take = mode === 'wait' ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared'
  return tx.rows(`SELECT ${take}(hashtextextended($1, 0))`, [`redrive ${schema} missing`])
}
