import { nextNumber, type MailContext } from './context.ts'
import { expireId } from './expiring.ts'
import type { Methods } from './protocol.ts'

const insertMessage = `INSERT INTO messages
  (seq, mailbox, id, place, hidden_until, held, deliveries, released, failures, enqueued_at)
  VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, ?) ON CONFLICT (mailbox, id) DO NOTHING`

/** Stores a message, unless one with its id is stored and has not expired. */
export function send(context: MailContext, request: Methods['send']['request']): null {
  const { db, nowMs } = context
  const [mailbox, id, about, bytes, delayMs, retention] = request
  const seq = nextNumber(context)
  const visibleAt = delayMs > 0 ? nowMs + delayMs : null
  const insert = (): boolean => db.run(insertMessage, seq, mailbox, id, seq, visibleAt, nowMs) > 0
  if (!insert() && !(expireId(context, mailbox, id, retention) && insert())) return null
  context.filled.add(mailbox)
  db.run('INSERT INTO bodies VALUES (?, ?, ?)', seq, about, bytes)
  return null
}
