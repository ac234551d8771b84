import type { Capacity } from '../../store.ts'
import { resolved } from '../rows/codes.ts'
import { readCells, standingOf } from './counters.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { entryColumns, entryOf, type Entry } from './rows.ts'
import { StateChanged } from '../../backends/postgres/errors.ts'

/** How many letters are kept, and which could go to make room: the longest resolved first. */
export interface Room {
  standing: number
  evictable: Entry[]
  going: Entry[]
  /** Whether there may be more that could go: others are just at it, or it was not looked for. */
  contested: boolean
}

/**
 * Letters that may be on their way in all processes at once. As long as there is room for that many, captures need not wait for each
 * other to be counted.
 */
const slack = 5000

/** Whether letters must be counted one by one. */
export async function isNear(tx: Transaction, capacities: readonly Capacity[]): Promise<boolean> {
  const cells = await readCells((sql, values) => tx.rows(sql, values))
  return standingOf(cells) + capacities.length + slack > leastOf(capacities)
}

const leastOf = (capacities: readonly Capacity[]): number =>
  Math.min(...capacities.map(({ maxItems }) => maxItems))

/** Looks for what could go, and counts. The lock for it is held, but not by those who remove letters, or resolve them. */
export async function roomFor(tx: Transaction, capacities: readonly Capacity[]): Promise<Room> {
  const cells = await readCells((sql, values) => tx.rows(sql, values))
  const excess = standingOf(cells) + capacities.length - leastOf(capacities)
  const evicts = capacities.some(({ overflow }) => overflow === 'evict-resolved')
  if (!evicts || excess <= 0)
    return { standing: standingOf(cells), evictable: [], going: [], contested: false }
  const queues = cells.filter(([{ state }]) => state === resolved).map(([{ queue }]) => queue)
  const found = (await tx.rows(oldest, [[...new Set(queues)], excess])).map(([id]) => id)
  const evictable = (await tx.rows(locked, [found])).map(entryOf)
  // Counted anew, since what others removed meanwhile is room.
  const standing = standingOf(await readCells((sql, values) => tx.rows(sql, values)))
  const contested = evictable.length < found.length || found.length === excess
  return { standing, evictable, going: [], contested }
}

const oldest = `SELECT r.id FROM unnest($1::int[]) AS q(queue) CROSS JOIN LATERAL (
    SELECT l.id, l.settled_at FROM @letters l WHERE l.queue = q.queue AND l.state = 2 AND l.settled_at IS NOT NULL
    ORDER BY l.settled_at, l.id LIMIT $2) AS r
  ORDER BY r.settled_at, r.id LIMIT $2`
const locked = `SELECT ${entryColumns('l')} FROM @letters l
  WHERE l.id = ANY($1::text[]) AND l.state = 2 ORDER BY l.settled_at, l.id FOR UPDATE SKIP LOCKED`

/** How many have to go for one more to fit; they are taken note of. Undefined: there is no room, and nothing goes. */
export function makeRoom(room: Room, { maxItems, overflow }: Capacity): number | undefined {
  const excess = room.standing + 1 - maxItems
  if (excess > 0) {
    if (overflow === 'reject') return undefined
    if (room.evictable.length < excess) {
      if (room.contested) throw new StateChanged('a resolved letter was taken in between')
      return undefined
    }
    room.going.push(...room.evictable.splice(0, excess))
    room.standing -= excess
  }
  room.standing += 1
  return Math.max(0, excess)
}
