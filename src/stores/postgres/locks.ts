import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'

/*
 * Advisory locks by name, held until the end of the transaction, so that they work through a
 * pooler. Every transaction takes its locks in one statement, in the order of their numbers, and
 * before it locks rows; rows are locked in the order of their ids.
 */

/**
 * Letters of one lane are added, settled and removed by one transaction at a time. Claims need no
 * such lock.
 */
export const laneLock = (queue: number, lane: string): string => `lane ${queue} ${lane}`

/** Captures with the same dedupe key run one at a time. */
export const keyLock = (queue: number, dedupe: Uint8Array): string =>
  `key ${queue} ${Buffer.from(dedupe).toString('hex')}`

/** Captures with a capacity limit run one at a time when the limit is near. */
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
  FROM @letters WHERE id = ANY($2::uuid[]) AND lane IS NOT NULL ORDER BY 1) AS numbers`

/** Takes the lane locks of letters, given as a list. A letter never changes its lane. */
export function lockLanes(tx: Transaction, { schema }: PostgresConnection, ids: string): void {
  void tx.rows(lockLanesOf, [`redrive ${schema} `, ids])
}
