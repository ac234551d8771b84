import type { Books } from './books.ts'
import type { Call } from './protocol.ts'
import type { Retention } from './protocol.ts'

/** Messages that one sweep looks at. */
const stride = 200
/** Expired messages are delivered to nobody, so they need not be removed at once. */
const betweenSweepsMs = 50

/** A message that is held by a receiver stays until its receipt lapses, however old it is. */
const isOverdue = 'enqueued_at <= ? AND NOT (held = 1 AND hidden_until > ?)'
const overdueAmongFirst = `SELECT seq FROM (SELECT seq, enqueued_at, held, hidden_until FROM messages
  WHERE mailbox = ? ORDER BY seq LIMIT ${stride}) WHERE ${isOverdue}`
const overdueOfId = `SELECT seq FROM messages WHERE mailbox = ? AND id = ? AND ${isOverdue}`

/** Messages enqueued at this time or before have expired. Without a retention there are none. */
export function expiredBefore({ nowMs }: Books, [retentionMs]: Retention): number {
  return retentionMs > 0 ? nowMs - retentionMs : -1
}

/**
 * Removes expired messages from every mailbox that is received from with a retention. Messages expire in the order in which they were
 * sent, so a sweep looks at the oldest ones and needs no index.
 */
export function sweep(books: Books, calls: Call[]): void {
  for (const [mailbox, retention] of retentionsOf(calls)) {
    if (!isTime(books, mailbox)) continue
    const found = overdueAmong(books, mailbox, retention)
    removeAll(books, mailbox, found, retention)
    if (found.length < stride) books.swept.set(mailbox, books.nowMs)
  }
}

/** Whether a sweep would find something. */
export function hasOverdue(books: Books, mailbox: number, retention: Retention): boolean {
  if (retention[0] === 0 || !isTime(books, mailbox)) return false
  return overdueAmong(books, mailbox, retention).length > 0
}

/** Removes the message with this id, if it has expired. */
export function expireId(books: Books, mailbox: number, id: string, retention: Retention): boolean {
  const { db, nowMs } = books
  const before = expiredBefore(books, retention)
  const found = db.all(overdueOfId, mailbox, id, before, nowMs).flat() as number[]
  removeAll(books, mailbox, found, retention)
  return found.length > 0
}

/** The shortest retention of the receivers of each mailbox. */
function retentionsOf(calls: Call[]): Map<number, Retention> {
  const retentions = new Map<number, Retention>()
  for (const [, verb, ask] of calls) {
    if (verb !== 'take') continue
    const [mailbox, , retention] = ask
    const [shortestMs = Infinity] = retentions.get(mailbox) ?? []
    if (retention[0] > 0 && retention[0] < shortestMs) retentions.set(mailbox, retention)
  }
  return retentions
}

function isTime({ nowMs, swept }: Books, mailbox: number): boolean {
  const sweptMs = swept.get(mailbox) ?? -Infinity
  return nowMs < sweptMs || nowMs >= sweptMs + betweenSweepsMs
}

function overdueAmong(books: Books, mailbox: number, retention: Retention): number[] {
  const { db, nowMs } = books
  const before = expiredBefore(books, retention)
  return db.all(overdueAmongFirst, mailbox, before, nowMs).flat() as number[]
}

function removeAll(
  { db, expired }: Books,
  mailbox: number,
  all: readonly number[],
  [, reporter]: Retention,
): void {
  for (const seq of all) {
    db.run('DELETE FROM messages WHERE mailbox = ? AND seq = ?', mailbox, seq)
    db.run('DELETE FROM bodies WHERE seq = ?', seq)
  }
  if (all.length > 0) expired.set(reporter, (expired.get(reporter) ?? 0) + all.length)
}
