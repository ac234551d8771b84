import type { SqlValue } from '../../backends/sqlite/database.ts'
import { lastOf, type Books } from './books.ts'
import { expireId } from './expiring.ts'
import type { CallFor } from './protocol.ts'

type Send = CallFor<'send'>

/** So many are written by one statement: a fifth to a third of the work of a short one is to call it. */
const together = 8

const rows = (count: number, row: string): string => Array.from({ length: count }, () => row).join()
const insertMessages = (count: number): string => `INSERT INTO messages
  (seq, mailbox, id, place, hidden_until, held, deliveries, released, failures, enqueued_at)
  VALUES ${rows(count, '(?, ?, ?, ?, ?, 0, 0, 0, 0, ?)')} ON CONFLICT (mailbox, id) DO NOTHING`
const insertBodies = (count: number): string =>
  `INSERT INTO bodies VALUES ${rows(count, '(?, ?, ?)')}`

const [oneMessage, oneBody] = [insertMessages(1), insertBodies(1)]
const [manyMessages, manyBodies] = [insertMessages(together), insertBodies(together)]

/** Keeps messages, as if one after the other. */
export function send(books: Books, all: readonly Send[]): null[] {
  for (let at = 0; at < all.length; at += together) {
    const some = all.slice(at, at + together)
    if (some.length < together || !addTogether(books, some)) for (const one of some) add(books, one)
  }
  return all.map(() => null)
}

/** All of them, or none: false, when one has an id that is taken. */
function addTogether(books: Books, some: readonly Send[]): boolean {
  const { db } = books
  const first = lastOf(books) + 1
  const messages = some.flatMap(([, , ask], n) => cellsOf(books, ask, first + n))
  const added = db.run(manyMessages, ...messages)
  if (added < some.length) {
    for (const [n, [, , [mailbox]]] of some.entries())
      db.run('DELETE FROM messages WHERE mailbox = ? AND seq = ?', mailbox, first + n)
    return false
  }
  db.run(manyBodies, ...some.flatMap(([, , [, , about], bytes], n) => [first + n, about, bytes!]))
  books.n = first + some.length - 1
  for (const [, , [mailbox]] of some) books.filled.add(mailbox)
  return true
}

function add(books: Books, [, , ask, bytes]: Send): void {
  const { db } = books
  const [mailbox, id, about, , retention] = ask
  const seq = lastOf(books) + 1
  const insert = (): boolean => db.run(oneMessage, ...cellsOf(books, ask, seq)) > 0
  const added = insert() || (expireId(books, mailbox, id, retention) && insert())
  if (!added) return
  books.n = seq
  books.filled.add(mailbox)
  db.run(oneBody, seq, about, bytes!)
}

function cellsOf({ nowMs }: Books, ask: Send[2], seq: number): SqlValue[] {
  const [mailbox, id, , delayMs] = ask
  return [seq, mailbox, id, seq, delayMs > 0 ? nowMs + delayMs : null, nowMs]
}
