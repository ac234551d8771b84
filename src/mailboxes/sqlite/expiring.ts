import type { Books } from './books.ts'
import type { Call } from './protocol.ts'

/** Messages that one look goes over. */
const stride = 200
/** What was kept too long is delivered to nobody, and need not be gone at once. */
const betweenSweepsMs = 50

/** A message that somebody works on is his until his receipt lapses, however old it is. */
const isOverdue = 'expires_at <= ? AND NOT (held = 1 AND hidden_until > ?)'
/** Of all others. */
export const isThere = `(expires_at IS NULL OR NOT (${isOverdue}))`
const next = `FROM messages WHERE mailbox = ? AND seq > ? ORDER BY seq LIMIT ${stride}`
const overdueAmongNext = `SELECT seq FROM (SELECT seq, expires_at, held, hidden_until ${next}) WHERE ${isOverdue}`
const endOfNext = `SELECT max(seq) FROM (SELECT seq ${next})`
const overdueOfId = `SELECT seq FROM messages WHERE mailbox = ? AND id = ? AND ${isOverdue}`

/**
 * Removes some of what was kept too long, from every mailbox that the calls are about. To keep an index of when messages expire takes a twenty-fifth
 * of all that is done for them, and nearly all are kept equally long: then those that were sent first are the first to go. Those that are
 * kept for a shorter time than others before them are found by going through all, a stride at a time.
 */
export function sweep(books: Books, calls: Call[]): void {
  const { swept, sweepFrom } = books
  const mailboxes = new Set(calls.flatMap(([, , ask]) => (typeof ask === 'string' ? [] : ask[0])))
  for (const mailbox of mailboxes) {
    if (!isTime(books, mailbox)) continue
    const from = sweepFrom.get(mailbox) ?? 0
    const end = books.db.get(endOfNext, mailbox, from)![0]
    sweepFrom.set(mailbox, Number(end ?? 0))
    if (from > 0) removeAll(books, mailbox, overdueAmong(books, mailbox, from))
    const first = overdueAmong(books, mailbox, 0)
    removeAll(books, mailbox, first)
    if (first.length < stride) swept.set(mailbox, books.nowMs)
  }
}

/** Whether a sweep would find something among those that were sent first. */
export function hasOverdue(books: Books, mailbox: number): boolean {
  return isTime(books, mailbox) && overdueAmong(books, mailbox, 0).length > 0
}

function isTime({ nowMs, swept }: Books, mailbox: number): boolean {
  const sweptMs = swept.get(mailbox) ?? -Infinity
  return nowMs < sweptMs || nowMs >= sweptMs + betweenSweepsMs
}

/** Removes the message with this id, if it was kept too long. */
export function expireId(books: Books, mailbox: number, id: string): boolean {
  const { db, nowMs } = books
  const found = db.all(overdueOfId, mailbox, id, nowMs, nowMs).flat() as number[]
  removeAll(books, mailbox, found)
  return found.length > 0
}

function overdueAmong({ db, nowMs }: Books, mailbox: number, from: number): number[] {
  return db.all(overdueAmongNext, mailbox, from, nowMs, nowMs).flat() as number[]
}

function removeAll({ db, expired }: Books, mailbox: number, all: readonly number[]): void {
  for (const seq of all) {
    db.run('DELETE FROM messages WHERE mailbox = ? AND seq = ?', mailbox, seq)
    db.run('DELETE FROM bodies WHERE seq = ?', seq)
  }
  if (all.length > 0) expired.set(mailbox, (expired.get(mailbox) ?? 0) + all.length)
}
