import type { SqlValue } from '../../sqlite/database.ts'
import type { Books } from './books.ts'
import type { Call } from './protocol.ts'

/** Messages that one transaction takes out because they were kept too long. */
const maxSwept = 200
/** What was kept too long is delivered to nobody, and need not be gone at once. */
const betweenSweepsMs = 50

/** A message that somebody works on is his until his receipt lapses, however old it is. */
export const overdue = 'mailbox = ? AND expires_at <= ? AND NOT (held = 1 AND hidden_until > ?)'
const anyOverdue = `SELECT seq FROM messages WHERE ${overdue} LIMIT ${maxSwept}`
export const overdueId = `SELECT seq FROM messages WHERE ${overdue} AND id = ?`

/** Removes some of what was kept too long, from every mailbox that the calls are about. Once all of it is gone, time has to go on before it looks for more. */
export function sweep(books: Books, calls: Call[]): void {
  const mailboxes = new Set(calls.flatMap(([, , ask]) => (typeof ask === 'string' ? [] : ask[0])))
  for (const mailbox of mailboxes) {
    const sweptMs = books.swept.get(mailbox) ?? -Infinity
    if (sweptMs <= books.nowMs && books.nowMs < sweptMs + betweenSweepsMs) continue
    if (expire(books, mailbox, anyOverdue) < maxSwept) books.swept.set(mailbox, books.nowMs)
  }
}

export function expire(
  books: Books,
  mailbox: number,
  which: string,
  ...values: SqlValue[]
): number {
  const { db, nowMs, expired } = books
  const gone = db.all(which, mailbox, nowMs, nowMs, ...values)
  for (const [seq] of gone) {
    db.run('DELETE FROM messages WHERE mailbox = ? AND seq = ?', mailbox, seq!)
    db.run('DELETE FROM bodies WHERE seq = ?', seq!)
  }
  if (gone.length > 0) expired.set(mailbox, (expired.get(mailbox) ?? 0) + gone.length)
  return gone.length
}
