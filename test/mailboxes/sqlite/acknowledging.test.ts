import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { acknowledge } from '../../../src/mailboxes/sqlite/acknowledging.ts'
import type { Books } from '../../../src/mailboxes/sqlite/books.ts'
import type { CallFor } from '../../../src/mailboxes/sqlite/protocol.ts'
import { contentsOf, empty, twoFiles } from './two-files.ts'

describe('acknowledge', () => {
  let two: Awaited<ReturnType<typeof twoFiles>>
  beforeAll(async () => {
    two = await twoFiles()
  })
  afterAll(() => two.close())

  const count = 24
  const nowMs = 1000

  /** Most are held by their first receivers; some wait, have lapsed, or were delivered again. */
  const state = fc.constantFrom('held', 'held', 'held', 'held', 'waits', 'lapsed', 'again')
  const call = fc
    .record({
      mailbox: fc.constantFrom(1, 1, 1, 2),
      seq: fc.integer({ min: 1, max: count + 1 }),
      deliveries: fc.constantFrom(1, 1, 1, 2),
    })
    .map(({ mailbox, seq, deliveries }): CallFor<'acknowledge'> => [
      0,
      'acknowledge',
      [mailbox, seq, deliveries],
    ])
  /** In a row, as they come from those who received together, and some out of it. */
  const row = fc
    .tuple(fc.integer({ min: 1, max: count }), fc.integer({ min: 0, max: 12 }))
    .map(([from, length]) =>
      Array.from({ length }, (_, n): CallFor<'acknowledge'> => [
        0,
        'acknowledge',
        [1, from + n, 1],
      ]),
    )
  const batch = fc
    .tuple(fc.array(row, { maxLength: 3 }), fc.array(call, { maxLength: 6 }))
    .map(([rows, others]) => [...rows.flat(), ...others])

  const fill = (books: Books, states: readonly string[]): void => {
    empty(books)
    books.nowMs = nowMs
    for (const [at, one] of states.entries()) {
      const seq = at + 1
      const until = { waits: null, lapsed: nowMs, held: nowMs + 1, again: nowMs + 1 }[one]!
      books.db.run(
        `INSERT INTO messages (mailbox, seq, id, place, hidden_until, held, deliveries, released, failures, enqueued_at)
         VALUES (1, ?, ?, ?, ?, ?, ?, 0, 0, 0)`,
        seq,
        String(seq),
        seq,
        until,
        one === 'waits' ? 0 : 1,
        one === 'again' ? 2 : 1,
      )
      books.db.run(`INSERT INTO bodies VALUES (?, '{}', ?)`, seq, Buffer.from([seq]))
    }
  }

  it('does for many what it does one by one, and takes nothing that a receipt does not hold', () => {
    const states = fc.array(state, { minLength: count, maxLength: count })
    const holds = fc.property(states, batch, (all, calls) => {
      const [together, oneByOne] = two.files
      for (const books of two.files) fill(books, all)
      const answers = acknowledge(together, calls)
      expect(answers).toEqual(calls.map((one) => acknowledge(oneByOne, [one])[0]))
      expect(contentsOf(together)).toEqual(contentsOf(oneByOne))
      expect(contentsOf(together).messages).toHaveLength(count - answers.filter(Boolean).length)
    })
    fc.assert(holds)
  })
})
