import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Books } from '../../../src/mailboxes/sqlite/books.ts'
import { expireId, hasOverdue, sweep } from '../../../src/mailboxes/sqlite/expiring.ts'
import type { CallFor } from '../../../src/mailboxes/sqlite/protocol.ts'
import { send } from '../../../src/mailboxes/sqlite/sending.ts'
import { contentsOf, twoFiles } from './two-files.ts'

const mailbox = 1
const retentionMs = 1000
const take: CallFor<'take'> = [0, 'take', [mailbox, [1]]]

describe('expiring', () => {
  let two: Awaited<ReturnType<typeof twoFiles>>
  let books: Books
  let sent: number
  beforeEach(async () => {
    two = await twoFiles()
    books = two.files[0]
    books.nowMs = 0
    sent = 0
  })
  afterEach(() => two.close())

  const add = (count: number, keptMs: number): void => {
    const calls = Array.from({ length: count }, (): CallFor<'send'> => [
      0,
      'send',
      [mailbox, `${keptMs}-${sent++}`, '{}', 0, keptMs],
      new Uint8Array(1),
    ])
    send(books, calls)
  }
  const left = (): number => {
    const { messages, bodies } = contentsOf(books)
    expect(bodies).toHaveLength(messages.length)
    return messages.length
  }
  const sweepAt = (ms: number): void => {
    books.nowMs = ms
    sweep(books, [take])
  }

  it('removes a bounded number at once, and goes on with the next call', () => {
    add(450, retentionMs)
    add(5, 2 * retentionMs)
    expect(hasOverdue(books, mailbox)).toBe(false)
    const lefts = [1, 2, 3, 4].map(() => {
      sweepAt(retentionMs)
      return left()
    })
    expect(lefts).toEqual([255, 5, 5, 5])
    expect(books.expired.get(mailbox)).toBe(450)
  })

  it('looks again only once time has gone on', () => {
    sweepAt(retentionMs)
    add(1, 10)
    sweepAt(retentionMs + 40)
    expect(left()).toBe(1)
    sweepAt(retentionMs + 50)
    expect(left()).toBe(0)
  })

  it('finds those that are kept for a shorter time than many before them', () => {
    add(900, 0)
    add(3, retentionMs)
    add(300, 0)
    expect(hasOverdue(books, mailbox)).toBe(false)
    for (let look = 0; look < 8; look++) sweepAt(retentionMs + 50 * look)
    expect(left()).toBe(1200)
  })

  it('leaves to others what somebody works on', () => {
    add(3, retentionMs)
    books.db.run('UPDATE messages SET held = 1, hidden_until = ? WHERE seq = 2', 5000)
    sweepAt(retentionMs)
    expect(contentsOf(books).messages.map(([, seq]) => seq)).toEqual([2])
    expect(expireId(books, mailbox, `${retentionMs}-1`)).toBe(false)
    books.nowMs = 5000
    expect(hasOverdue(books, mailbox)).toBe(true)
    expect(expireId(books, mailbox, `${retentionMs}-1`)).toBe(true)
    expect(left()).toBe(0)
  })
})
