import type { Capacity } from '../../store.ts'
import { resolved } from '../../kept/codes.ts'
import { readCells, standingOf } from './counters.ts'
import type { Tx } from './link.ts'
import { entryColumns, entryOf, type Entry } from './rows.ts'

/** How many letters are kept, and which could go to make room: the longest resolved first. */
export interface Room {
  standing: number
  evictable: Entry[]
  going: Entry[]
}

/**
 * Letters that may be on their way in all processes at once. As long as there is room for that many, captures need not wait for each
 * other to be counted.
 */
const slack = 5000

/** Whether letters must be counted one by one. */
export async function isNear(tx: Tx, capacities: readonly Capacity[]): Promise<boolean> {
  const cells = await readCells((sql, values) => tx.rows(sql, values))
  return standingOf(cells) + capacities.length + slack > leastOf(capacities)
}

const leastOf = (capacities: readonly Capacity[]): number =>
  Math.min(...capacities.map(({ maxItems }) => maxItems))

/** Counts, and looks for what could go. The lock for it is held. */
export async function roomFor(tx: Tx, capacities: readonly Capacity[]): Promise<Room> {
  const cells = await readCells((sql, values) => tx.rows(sql, values))
  const standing = standingOf(cells)
  const excess = standing + capacities.length - leastOf(capacities)
  const evicts = capacities.some(({ overflow }) => overflow === 'evict-resolved')
  const queues = cells.filter(([{ state }]) => state === resolved).map(([{ queue }]) => queue)
  const evictable =
    evicts && excess > 0 ? await longestResolved(tx, [...new Set(queues)], excess) : []
  return { standing, evictable, going: [] }
}

const oldest = `SELECT r.id FROM unnest($1::int[]) AS q(queue) CROSS JOIN LATERAL (
    SELECT l.id, l.settled_at FROM @letters l WHERE l.queue = q.queue AND l.state = 2 AND l.settled_at IS NOT NULL
    ORDER BY l.settled_at, l.id LIMIT $2) AS r
  ORDER BY r.settled_at, r.id LIMIT $2`
const locked = `SELECT ${entryColumns('l')} FROM @letters l
  WHERE l.id = ANY($1::text[]) AND l.state = 2 ORDER BY l.settled_at, l.id FOR UPDATE SKIP LOCKED`

async function longestResolved(tx: Tx, queues: number[], count: number): Promise<Entry[]> {
  const ids = (await tx.rows(oldest, [queues, count])).map(([id]) => id)
  return (await tx.rows(locked, [ids])).map(entryOf)
}

/** How many have to go for one more to fit; they are taken note of. Undefined: there is no room, and nothing goes. */
export function makeRoom(room: Room, { maxItems, overflow }: Capacity): number | undefined {
  const excess = room.standing + 1 - maxItems
  if (excess > 0) {
    if (overflow === 'reject' || room.evictable.length < excess) return undefined
    room.going.push(...room.evictable.splice(0, excess))
    room.standing -= excess
  }
  room.standing += 1
  return Math.max(0, excess)
}
