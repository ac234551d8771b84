import type { Capacity } from '../../store.ts'
import { resolved } from '../rows/codes.ts'
import { readCells, countStored } from './counters.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { joinIds } from './text.ts'
import { StateChanged } from '../../backends/postgres/errors.ts'

/** The number of stored letters, and those that may be evicted, the longest resolved first. */
export interface Room {
  stored: number
  evictable: string[]
  evicted: string[]
  /**
   * Whether more letters could be evicted: other transactions have them locked, or the query was
   * limited.
   */
  contested: boolean
}

/**
 * Upper bound of letters in flight in all processes. With room for more than that, captures need
 * not wait for each other to count exactly.
 */
const slack = 5000

/** Whether the capacity is so near that letters must be counted one by one. */
export async function isCapacityNear(
  tx: Transaction,
  capacities: readonly Capacity[],
): Promise<boolean> {
  const cells = await readCells((sql, values) => tx.rows(sql, values))
  return countStored(cells) + capacities.length + slack > smallestLimit(capacities)
}

const smallestLimit = (capacities: readonly Capacity[]): number =>
  Math.min(...capacities.map(({ maxItems }) => maxItems))

/**
 * Finds letters to evict, and counts letters. The capacity lock is held, but transactions that
 * remove or resolve letters do not take it.
 */
export async function findRoom(tx: Transaction, capacities: readonly Capacity[]): Promise<Room> {
  const cells = await readCells((sql, values) => tx.rows(sql, values))
  const excess = countStored(cells) + capacities.length - smallestLimit(capacities)
  const evicts = capacities.some(({ overflow }) => overflow === 'evict-resolved')
  if (!evicts || excess <= 0)
    return { stored: countStored(cells), evictable: [], evicted: [], contested: false }
  const queues = cells.filter(([{ state }]) => state === resolved).map(([{ queue }]) => queue)
  const found = (await tx.rows(oldest, [[...new Set(queues)], excess])).map(([id]) => id as string)
  const evictable = (await tx.rows(locked, [joinIds(found)])).map(([id]) => id as string)
  // Counted again, since others may have removed letters meanwhile.
  const stored = countStored(await readCells((sql, values) => tx.rows(sql, values)))
  const contested = evictable.length < found.length || found.length === excess
  return { stored, evictable, evicted: [], contested }
}

const oldest = `SELECT r.id FROM unnest($1::int[]) AS q(queue) CROSS JOIN LATERAL (
    SELECT l.id, l.settled_at FROM @letters l WHERE l.queue = q.queue AND l.state = 2 AND l.settled_at IS NOT NULL
    ORDER BY l.settled_at, l.id LIMIT $2) AS r
  ORDER BY r.settled_at, r.id LIMIT $2`
const locked = `SELECT l.id FROM @letters l
  WHERE l.id = ANY($1::uuid[]) AND l.state = 2 ORDER BY l.settled_at, l.id FOR UPDATE SKIP LOCKED`

/**
 * The number of letters evicted to make room for one more. Undefined: there is no room, and nothing
 * is evicted.
 */
export function makeRoom(room: Room, { maxItems, overflow }: Capacity): number | undefined {
  const excess = room.stored + 1 - maxItems
  if (excess > 0) {
    if (overflow === 'reject') return undefined
    if (room.evictable.length < excess) {
      if (room.contested) throw new StateChanged('a resolved letter was changed concurrently')
      return undefined
    }
    room.evicted.push(...room.evictable.splice(0, excess))
    room.stored -= excess
  }
  room.stored += 1
  return Math.max(0, excess)
}
