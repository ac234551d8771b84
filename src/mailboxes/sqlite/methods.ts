import type { MailboxHealth } from '../../mailbox.ts'
import type { Database } from '../../backends/sqlite/database.ts'
import type { Method } from '../../backends/sqlite/dispatcher.ts'
import { maxSlots } from '../shared-receiver.ts'
import { nextNumber, type MailContext } from './context.ts'
import { expiredBefore, hasOverdue, sweep } from './expiring.ts'
import type { StoredMessage, Methods, Retention, TakenMessages } from './protocol.ts'
import { send } from './sending.ts'

type MethodOf<M extends keyof Methods> = Method<
  MailContext,
  Methods[M]['request'],
  Methods[M]['response']
>

/** Maximum number of lapsed messages that one call returns to the queue. */
const maxBack = 200
/**
 * Maximum bytes of one take or page, unless a single body is larger.
 */
const maxTakenBytes = 32 * 2 ** 20
/** Larger bodies are read one by one. */
const maxSmallBytes = Math.floor(maxTakenBytes / maxSlots)

/** Matches a delivery whose receipt is valid. */
const holds = 'mailbox = ? AND seq = ? AND held = 1 AND deliveries = ? AND hidden_until > ?'
const returnMessage = `UPDATE messages SET held = 0, hidden_until = ?, failures = failures + ?, released = released + ?,
  place = ifnull(?, place) WHERE ${holds}`
const holdLonger = `UPDATE messages SET hidden_until = max(hidden_until, ?) WHERE ${holds}`

/**
 * Settling a delivery does not wait for the disk. A power loss that undoes it also stops the
 * receiver, which may have been about to settle it anyway: the message is delivered again, as after
 * any crash.
 */
const settles = 'write-behind'

export const methods: { [M in keyof Methods]: MethodOf<M> } = {
  send: { kind: 'write', run: send },

  open: {
    kind: 'write',
    run({ db }, name) {
      db.run('INSERT INTO mailboxes (name) VALUES (?) ON CONFLICT DO NOTHING', name)
      return Number(db.get('SELECT id FROM mailboxes WHERE name = ?', name)![0])
    },
  },

  take: {
    kind: settles,
    run: take,
    // Waiting receivers poll again and again, and must not take the write lock each time.
    peek: (context, [mailbox, , retention]) =>
      hasNothing(context, mailbox, retention)
        ? { found: [], ...nextOf(context, mailbox) }
        : undefined,
  },

  acknowledge: {
    kind: settles,
    run({ db, nowMs }, held) {
      if (db.run(`DELETE FROM messages WHERE ${holds}`, ...held, nowMs) === 0) return false
      db.run('DELETE FROM bodies WHERE seq = ?', held[1])
      return true
    },
  },

  nack: {
    kind: settles,
    run(context, [mailbox, seq, deliveries, delayMs, failed, tail]) {
      const { db, nowMs } = context
      const returned = db.run(
        returnMessage,
        delayMs > 0 ? nowMs + delayMs : null,
        failed ? 1 : 0,
        failed ? 0 : 1,
        tail ? nextNumber(context) : null,
        mailbox,
        seq,
        deliveries,
        nowMs,
      )
      if (returned === 0) return false
      context.filled.add(mailbox)
      // The message may have expired while it was held.
      context.swept.delete(mailbox)
      return true
    },
  },

  extend: {
    kind: settles,
    run: ({ db, nowMs }, [mailbox, seq, deliveries, ms]) =>
      db.run(holdLonger, nowMs + ms, mailbox, seq, deliveries, nowMs) > 0,
  },

  purge: {
    kind: 'write',
    run({ db }, [mailbox]) {
      db.run(
        'DELETE FROM bodies WHERE seq IN (SELECT seq FROM messages WHERE mailbox = ?)',
        mailbox,
      )
      return db.run('DELETE FROM messages WHERE mailbox = ?', mailbox)
    },
  },

  count: { kind: 'read', run: ({ db }, [mailbox]) => countOf(db, mailbox) },

  browse: {
    kind: 'read',
    run({ db }, [mailbox, after, limit]) {
      const rows = db.all(page, mailbox, after, limit + 1) as StoredMessage[]
      const found: StoredMessage[] = []
      let bytes = 0
      for (const row of rows.slice(0, limit)) {
        found.push(row)
        bytes += readBody(db, row)
        if (bytes >= maxTakenBytes) break
      }
      return { found, more: rows.length > found.length }
    },
  },

  health: { kind: 'read', run: checkHealth },
}

function take(
  context: MailContext,
  [mailbox, slots, retention]: Methods['take']['request'],
): TakenMessages {
  sweep(context, mailbox, retention)
  returnLapsed(context, mailbox)
  const found = findFirst(context, mailbox, slots.length, retention)
  for (let from = 0, end = 0; from < found.length; from = end) {
    while (end < found.length && slots[end] === slots[from]) end += 1
    hide(context, mailbox, found.slice(from, end), context.nowMs + slots[from]!, retention)
  }
  if (found.length < slots.length) context.filled.delete(mailbox)
  return found.length > 0
    ? { found: found.map(({ message }) => message) }
    : { found: [], ...nextOf(context, mailbox) }
}

function checkHealth({ db, path }: MailContext, [mailbox]: [mailbox: number]): MailboxHealth {
  const mode = String(db.get('PRAGMA journal_mode')![0])
  const checks: Record<string, string> = {
    path,
    sqlite: String(db.get('SELECT sqlite_version()')![0]),
    journal_mode: mode,
    messages: String(countOf(db, mailbox)),
  }
  const problems =
    mode === 'wal' ? [] : [`journal_mode is ${mode}, not wal: close all processes and open again`]
  return { ok: problems.length === 0, checks, problems }
}

function countOf(db: Database, mailbox: number): number {
  return Number(db.get('SELECT count(*) FROM messages WHERE mailbox = ?', mailbox)![0])
}

const waits = 'm.mailbox = ? AND m.hidden_until IS NULL AND m.enqueued_at > ?'

const whole = 'FROM messages m JOIN bodies b ON b.seq = m.seq'
const small = `iif(length(b.bytes) <= ${maxSmallBytes}, b.bytes, NULL)`

// Without large bodies.
const page = `SELECT m.seq, m.deliveries, m.id, b.about, ${small}, m.released, m.failures, m.enqueued_at, m.first_at ${whole} WHERE m.mailbox = ? AND m.seq > ? ORDER BY m.seq LIMIT ?`
// The messages as they will be delivered. `0 +`: SQLite would prepare a statement with a plain
// parameter as its limit again each time.
const head = `SELECT m.place, m.seq, m.deliveries + 1, m.id, b.about, ${small},
  m.released, m.failures, m.enqueued_at, ifnull(m.first_at, ?) ${whole} WHERE ${waits} ORDER BY m.place LIMIT 0 + ?`
const hideThem = `UPDATE messages AS m SET held = 1, hidden_until = ?, deliveries = deliveries + 1,
  first_at = ifnull(first_at, ?) WHERE ${waits} AND place BETWEEN ? AND ?`

const body = 'SELECT bytes FROM bodies WHERE seq = ?'

interface First {
  message: StoredMessage
  place: number
}

/**
 * The first visible messages, as they will be delivered. They are read before they are hidden,
 * since reading stops at a number of bytes.
 */
function findFirst(
  context: MailContext,
  mailbox: number,
  most: number,
  retention: Retention,
): First[] {
  const { db, nowMs } = context
  const before = expiredBefore(context, retention)
  const found: First[] = []
  let weight = 0
  for (const [place, ...row] of db.all(head, nowMs, mailbox, before, most)) {
    const message = row as StoredMessage
    found.push({ place: place as number, message })
    weight += readBody(db, message)
    if (weight >= maxTakenBytes) break
  }
  return found
}

/** Reads the body if it is large. Returns the size of the body. */
function readBody(db: Database, message: StoredMessage): number {
  message[4] ??= db.get(body, message[0])![0] as Uint8Array
  return message[4].byteLength
}

/** Hides adjacent messages. */
function hide(
  context: MailContext,
  mailbox: number,
  found: First[],
  untilMs: number,
  retention: Retention,
): void {
  const [first, last] = [found[0]!.place, found.at(-1)!.place]
  const before = expiredBefore(context, retention)
  context.db.run(hideThem, untilMs, context.nowMs, mailbox, before, first, last)
}

/** Whether a receiver would find nothing to do. */
function hasNothing(context: MailContext, mailbox: number, retention: Retention): boolean {
  const { db, nowMs, filled } = context
  if (filled.has(mailbox) || db.get(something, mailbox, mailbox, nowMs)![0] === 1) return false
  return !hasOverdue(context, mailbox, retention)
}

const something = `SELECT EXISTS (SELECT 1 FROM messages WHERE mailbox = ? AND hidden_until IS NULL)
  OR EXISTS (SELECT 1 FROM messages WHERE mailbox = ? AND hidden_until <= ?)`

/** Moves messages whose delay or visibility has ended behind all visible ones. */
function returnLapsed(context: MailContext, mailbox: number): void {
  const { db, nowMs } = context
  const lapsed = db.all(
    `SELECT seq FROM messages WHERE mailbox = ? AND hidden_until <= ? ORDER BY hidden_until, place LIMIT ${maxBack}`,
    mailbox,
    nowMs,
  )
  for (const [seq] of lapsed)
    db.run(
      'UPDATE messages SET held = 0, hidden_until = NULL, place = ? WHERE mailbox = ? AND seq = ?',
      nextNumber(context),
      mailbox,
      seq!,
    )
}

function nextOf({ db, nowMs }: MailContext, mailbox: number): Pick<TakenMessages, 'nextMs'> {
  const row = db.get(
    'SELECT hidden_until FROM messages WHERE mailbox = ? AND hidden_until IS NOT NULL ORDER BY hidden_until LIMIT 1',
    mailbox,
  )
  return row ? { nextMs: Math.max(0, Number(row[0]) - nowMs) } : {}
}
