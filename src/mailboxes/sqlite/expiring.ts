import type { MailContext } from './context.ts'
import type { Retention } from './protocol.ts'

/** Number of messages that one sweep scans. */
const scanStep = 200
/** Minimum time between sweeps. Expired messages are never delivered, so removal can wait. */
const betweenSweepsMs = 50

/** A message held by a receiver stays until its receipt lapses. */
const isOverdue = 'enqueued_at <= ? AND NOT (held = 1 AND hidden_until > ?)'
const overdueAmongFirst = `SELECT seq FROM (SELECT seq, enqueued_at, held, hidden_until FROM messages
  WHERE mailbox = ? ORDER BY seq LIMIT ${scanStep}) WHERE ${isOverdue}`
const overdueOfId = `SELECT seq FROM messages WHERE mailbox = ? AND id = ? AND ${isOverdue}`

/** Messages enqueued at or before this time have expired. */
export function expiredBefore({ nowMs }: MailContext, [retentionMs]: Retention): number {
  return retentionMs > 0 ? nowMs - retentionMs : -1
}

/**
 * Removes expired messages of a mailbox. Messages expire in the order in which they were sent, so a
 * sweep reads the oldest ones and needs no index.
 */
export function sweep(context: MailContext, mailbox: number, retention: Retention): void {
  if (retention[0] === 0 || !isTime(context, mailbox)) return
  const found = overdueAmong(context, mailbox, retention)
  removeAll(context, mailbox, found, retention)
  if (found.length < scanStep) context.swept.set(mailbox, context.nowMs)
}

/** Whether a sweep would remove something. */
export function hasOverdue(context: MailContext, mailbox: number, retention: Retention): boolean {
  if (retention[0] === 0 || !isTime(context, mailbox)) return false
  return overdueAmong(context, mailbox, retention).length > 0
}

/** Removes the message with this id if it has expired. */
export function expireId(
  context: MailContext,
  mailbox: number,
  id: string,
  retention: Retention,
): boolean {
  const { db, nowMs } = context
  const before = expiredBefore(context, retention)
  const found = db.all(overdueOfId, mailbox, id, before, nowMs).flat() as number[]
  removeAll(context, mailbox, found, retention)
  return found.length > 0
}

function isTime({ nowMs, swept }: MailContext, mailbox: number): boolean {
  const sweptMs = swept.get(mailbox) ?? -Infinity
  return nowMs < sweptMs || nowMs >= sweptMs + betweenSweepsMs
}

function overdueAmong(context: MailContext, mailbox: number, retention: Retention): number[] {
  const { db, nowMs } = context
  const before = expiredBefore(context, retention)
  return db.all(overdueAmongFirst, mailbox, before, nowMs).flat() as number[]
}

function removeAll(
  { db, expired }: MailContext,
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
