import type { MailboxHealth } from '../../mailbox.ts'
import type { Database } from '../../backends/sqlite/database.ts'
import { maxSlots } from '../shared-receiver.ts'
import { acknowledge, holds } from './acknowledging.ts'
import { lastOf, type Books } from './books.ts'
import { expiredBefore, hasOverdue } from './expiring.ts'
import type { Call, CallFor, Kept, TakenMessages, Verb, Verbs } from './protocol.ts'
import type { Retention } from './protocol.ts'
import { send } from './sending.ts'

type Work<V extends Verb> = (books: Books, ask: Verbs[V]['ask']) => Verbs[V]['answer']
type Works = { [V in Verb]?: Work<V> }
/** Calls of one verb that stand one behind the other are done together. */
type Writing<V extends Verb> = (books: Books, calls: readonly CallFor<V>[]) => Verbs[V]['answer'][]
type Writes = { [V in Verb]?: Writing<V> }

/** Messages that one transaction puts back because they lapsed. */
const maxBack = 200
/** Bodies that go to the receivers in one batch, or are shown on one page, unless a single one is larger. */
const maxTakenBytes = 32 * 2 ** 20
/** Larger ones than a whole look has room for are read one by one. */
const maxSmallBytes = Math.floor(maxTakenBytes / maxSlots)

const giveBack = `UPDATE messages SET held = 0, hidden_until = ?, failures = failures + ?, released = released + ?,
  place = ifnull(?, place) WHERE ${holds}`
const holdLonger = `UPDATE messages SET hidden_until = max(hidden_until, ?) WHERE ${holds}`

function each<V extends Verb>(one: Work<V>): Writing<V> {
  return (books, calls) => calls.map(([, , ask]) => one(books, ask))
}

/** What changes the file. Each runs inside the transaction of its batch. */
export const writes: Writes = {
  send,
  acknowledge,

  open: each(({ db }, name) => {
    db.run('INSERT INTO mailboxes (name) VALUES (?) ON CONFLICT DO NOTHING', name)
    return Number(db.get('SELECT id FROM mailboxes WHERE name = ?', name)![0])
  }),

  take: each((books, [mailbox, slots, retention]) => {
    putBackLapsed(books, mailbox)
    const found = firstOf(books, mailbox, slots.length, retention)
    for (let from = 0, end = 0; from < found.length; from = end) {
      while (end < found.length && slots[end] === slots[from]) end += 1
      hide(books, mailbox, found.slice(from, end), books.nowMs + slots[from]!, retention)
    }
    if (found.length < slots.length) books.filled.delete(mailbox)
    return found.length > 0
      ? { found: found.map(({ kept }) => kept) }
      : { found: [], ...nextOf(books, mailbox) }
  }),

  nack: each((books, [mailbox, seq, deliveries, delayMs, failed, tail]) => {
    const { db, nowMs } = books
    const given = db.run(
      giveBack,
      delayMs > 0 ? nowMs + delayMs : null,
      failed ? 1 : 0,
      failed ? 0 : 1,
      tail ? lastOf(books) + 1 : null,
      mailbox,
      seq,
      deliveries,
      nowMs,
    )
    if (given === 0) return false
    books.filled.add(mailbox)
    // It may have expired meanwhile, and was left alone because somebody held it.
    books.swept.delete(mailbox)
    if (tail) books.n = lastOf(books) + 1
    return true
  }),

  extend: each(({ db, nowMs }, [mailbox, seq, deliveries, ms]) => {
    return db.run(holdLonger, nowMs + ms, mailbox, seq, deliveries, nowMs) > 0
  }),

  purge: each(({ db }, [mailbox]) => {
    db.run('DELETE FROM bodies WHERE seq IN (SELECT seq FROM messages WHERE mailbox = ?)', mailbox)
    return db.run('DELETE FROM messages WHERE mailbox = ?', mailbox)
  }),
}

/** What only looks. */
export const reads: Works = {
  /** Of a mailbox that has nothing to give. */
  take: (books, [mailbox]) => ({ found: [], ...nextOf(books, mailbox) }),

  count({ db }, [mailbox]) {
    return Number(db.get(countOf, mailbox)![0])
  },

  browse({ db }, [mailbox, after, limit]) {
    const rows = db.all(page, mailbox, after, limit + 1) as Kept[]
    const found: Kept[] = []
    let weight = 0
    for (const kept of rows.slice(0, limit)) {
      found.push(kept)
      weight += withBody(db, kept)
      if (weight >= maxTakenBytes) break
    }
    return { found, more: rows.length > found.length }
  },

  health(books, ask): MailboxHealth {
    const checks: Record<string, string> = {
      path: books.path,
      sqlite: String(books.db.get('SELECT sqlite_version()')![0]),
      journal_mode: String(books.db.get('PRAGMA journal_mode')![0]),
      messages: String(reads.count!(books, ask)),
    }
    const problems =
      checks['journal_mode'] === 'wal'
        ? []
        : [`journal_mode is ${checks['journal_mode']}, not wal: close all processes and open again`]
    return { ok: problems.length === 0, checks, problems }
  },
}

const waits = 'm.mailbox = ? AND m.hidden_until IS NULL AND m.enqueued_at > ?'

const whole = 'FROM messages m JOIN bodies b ON b.seq = m.seq'
const small = `iif(length(b.bytes) <= ${maxSmallBytes}, b.bytes, NULL)`

const countOf = 'SELECT count(*) FROM messages WHERE mailbox = ?'
// Both without large bodies.
const page = `SELECT m.seq, m.deliveries, m.id, b.about, ${small}, m.released, m.failures, m.enqueued_at, m.first_at ${whole} WHERE m.mailbox = ? AND m.seq > ? ORDER BY m.seq LIMIT ?`
// As they will be delivered. SQLite would prepare a statement with a bare value for its limit anew each time.
const head = `SELECT m.place, m.seq, m.deliveries + 1, m.id, b.about, ${small},
  m.released, m.failures, m.enqueued_at, ifnull(m.first_at, ?) ${whole} WHERE ${waits} ORDER BY m.place LIMIT 0 + ?`
const hideThem = `UPDATE messages AS m SET held = 1, hidden_until = ?, deliveries = deliveries + 1,
  first_at = ifnull(first_at, ?) WHERE ${waits} AND place BETWEEN ? AND ?`

const body = 'SELECT bytes FROM bodies WHERE seq = ?'

interface First {
  kept: Kept
  place: number
}

/** The first that wait, as they will be delivered. They are read before they are hidden, since what is read stops at a weight. */
function firstOf(books: Books, mailbox: number, most: number, retention: Retention): First[] {
  const { db, nowMs } = books
  const before = expiredBefore(books, retention)
  const found: First[] = []
  let weight = 0
  for (const [place, ...row] of db.all(head, nowMs, mailbox, before, most)) {
    const kept = row as Kept
    found.push({ place: place as number, kept })
    weight += withBody(db, kept)
    if (weight >= maxTakenBytes) break
  }
  return found
}

/** Reads its body if it is a large one, and answers how large it is. */
function withBody(db: Database, kept: Kept): number {
  kept[4] ??= db.get(body, kept[0])![0] as Uint8Array
  return kept[4].byteLength
}

/** Hides messages that stand one behind the other. */
function hide(
  books: Books,
  mailbox: number,
  found: First[],
  untilMs: number,
  retention: Retention,
): void {
  const [first, last] = [found[0]!.place, found.at(-1)!.place]
  const before = expiredBefore(books, retention)
  books.db.run(hideThem, untilMs, books.nowMs, mailbox, before, first, last)
}

/** Whether a call that takes would find nothing to do, so that no transaction is needed for it. */
export function hasNothing(books: Books, [, verb, ask]: Call): boolean {
  const { db, nowMs, filled } = books
  if (verb !== 'take' || filled.has(ask[0])) return false
  const [mailbox, , retention] = ask
  if (db.get(something, mailbox, mailbox, nowMs)![0] === 1) return false
  return !hasOverdue(books, mailbox, retention)
}

const something = `SELECT EXISTS (SELECT 1 FROM messages WHERE mailbox = ? AND hidden_until IS NULL)
  OR EXISTS (SELECT 1 FROM messages WHERE mailbox = ? AND hidden_until <= ?)`

/** What was delayed, or held by somebody who did not come back, goes behind what waits. */
function putBackLapsed(books: Books, mailbox: number): void {
  const { db, nowMs } = books
  const lapsed = db.all(
    `SELECT seq FROM messages WHERE mailbox = ? AND hidden_until <= ? ORDER BY hidden_until, place LIMIT ${maxBack}`,
    mailbox,
    nowMs,
  )
  for (const [seq] of lapsed)
    db.run(
      'UPDATE messages SET held = 0, hidden_until = NULL, place = ? WHERE mailbox = ? AND seq = ?',
      (books.n = lastOf(books) + 1),
      mailbox,
      seq!,
    )
}

function nextOf({ db, nowMs }: Books, mailbox: number): Pick<TakenMessages, 'nextMs'> {
  const row = db.get(
    'SELECT hidden_until FROM messages WHERE mailbox = ? AND hidden_until IS NOT NULL ORDER BY hidden_until LIMIT 1',
    mailbox,
  )
  return row ? { nextMs: Math.max(0, Number(row[0]) - nowMs) } : {}
}
