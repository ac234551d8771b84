import type { Books } from './books.ts'
import type { CallFor, Held } from './protocol.ts'
import { runsOf } from './runs.ts'

const holding = 'held = 1 AND deliveries = ? AND hidden_until > ?'
/** Of a receipt that holds. */
export const holds = `mailbox = ? AND seq = ? AND ${holding}`
const allHold = `mailbox = ? AND seq BETWEEN ? AND ? AND ${holding}`

/** Messages that stand one behind the other are often done with at once, and go by one statement. */
export function acknowledge(books: Books, calls: readonly CallFor<'acknowledge'>[]): boolean[] {
  const answers = calls.map(() => false)
  const sorted = calls
    .map(([, , held], at) => [at, held] as const)
    .toSorted(([, a], [, b]) => a[1] - b[1])
  for (const row of runsOf(sorted, ([, first], [, other], by) => isBehind(first, other, by))) {
    const areGone = row.length > 1 && removeRow(books, row[0]![1], row.length)
    for (const [at, held] of row) answers[at] = areGone || remove(books, held)
  }
  return answers
}

function isBehind(first: Held, other: Held, by: number): boolean {
  return other[0] === first[0] && other[1] === first[1] + by && other[2] === first[2]
}

/** All of them, or none: false, when one of the receipts does not hold. */
function removeRow({ db, nowMs }: Books, [mailbox, seq, deliveries]: Held, count: number): boolean {
  const last = seq + count - 1
  const which = [mailbox, seq, last, deliveries, nowMs] as const
  if (db.get(`SELECT count(*) FROM messages WHERE ${allHold}`, ...which)![0] !== count) return false
  db.run(`DELETE FROM messages WHERE ${allHold}`, ...which)
  db.run('DELETE FROM bodies WHERE seq BETWEEN ? AND ?', seq, last)
  return true
}

function remove({ db, nowMs }: Books, held: Held): boolean {
  if (db.run(`DELETE FROM messages WHERE ${holds}`, ...held, nowMs) === 0) return false
  db.run('DELETE FROM bodies WHERE seq = ?', held[1])
  return true
}
