import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Books } from '../../../src/mailboxes/sqlite/books.ts'
import { expireId, hasOverdue, sweep } from '../../../src/mailboxes/sqlite/expiring.ts'
import type { CallFor } from '../../../src/mailboxes/sqlite/protocol.ts'
import type { Retention } from '../../../src/mailboxes/sqlite/protocol.ts'
import { send } from '../../../src/mailboxes/sqlite/sending.ts'
import { contentsOf, twoFiles } from './two-files.ts'

const mailbox = 1
const retention: Retention = [1000, 7]
const take: CallFor<'take'> = [0, 'take', [mailbox, [1], retention]]
const takeForEver: CallFor<'take'> = [0, 'take', [mailbox, [1], [0, 8]]]

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

  const add = (count: number): void => {
    const calls = Array.from({ length: count }, (): CallFor<'send'> => [
      0,
      'send',
      [mailbox, `m${sent++}`, '{}', 0, retention],
      new Uint8Array(1),
    ])
    send(books, calls)
  }
  const left = (): number => {
    const { messages, bodies } = contentsOf(books)
    expect(bodies).toHaveLength(messages.length)
    return messages.length
  }
  const sweepAt = (ms: number, call = take): void => {
    books.nowMs = ms
    sweep(books, [call])
  }

  it('removes a bounded number at once, and goes on with the next call', () => {
    add(450)
    books.nowMs = 500
    add(5)
    expect(hasOverdue(books, mailbox, retention)).toBe(false)
    const lefts = [1, 2, 3, 4].map(() => {
      sweepAt(1000)
      return left()
    })
    expect(lefts).toEqual([255, 55, 5, 5])
    expect(books.expired).toEqual(new Map([[7, 450]]))
  })

  it('looks again only once time has gone on', () => {
    sweepAt(1030)
    add(1)
    sweepAt(2029)
    sweepAt(2070)
    expect(left()).toBe(1)
    sweepAt(2079)
    expect(left()).toBe(0)
  })

  it('removes nothing for those who receive without a retention, nor for those who send', () => {
    add(3)
    sweepAt(1e9, takeForEver)
    books.nowMs = 1e9
    sweep(books, [[0, 'send', [mailbox, 'new', '{}', 0, retention], new Uint8Array(1)]])
    expect(left()).toBe(3)
    expect(expireId(books, mailbox, 'm1', [0, 8])).toBe(false)
  })

  it('leaves a message that a receiver holds', () => {
    add(3)
    books.db.run('UPDATE messages SET held = 1, hidden_until = ? WHERE seq = 2', 5000)
    sweepAt(1000)
    expect(contentsOf(books).messages.map(([, seq]) => seq)).toEqual([2])
    expect(expireId(books, mailbox, 'm1', retention)).toBe(false)
    books.nowMs = 5000
    expect(hasOverdue(books, mailbox, retention)).toBe(true)
    expect(expireId(books, mailbox, 'm1', retention)).toBe(true)
    expect(left()).toBe(0)
  })
})
