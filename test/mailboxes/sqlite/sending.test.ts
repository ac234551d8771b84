import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Books } from '../../../src/mailboxes/sqlite/books.ts'
import type { CallFor } from '../../../src/mailboxes/sqlite/protocol.ts'
import { send } from '../../../src/mailboxes/sqlite/sending.ts'
import { contentsOf, empty, twoFiles } from './two-files.ts'

describe('send', () => {
  let two: Awaited<ReturnType<typeof twoFiles>>
  beforeAll(async () => {
    two = await twoFiles()
  })
  afterAll(() => two.close())

  const call = fc
    .record({
      mailbox: fc.integer({ min: 1, max: 2 }),
      id: fc.integer({ min: 0, max: 40 }).map(String),
      delayMs: fc.constantFrom(0, 0, 0, 500),
      retentionMs: fc.constantFrom(0, 5, 1000),
      body: fc.uint8Array({ maxLength: 4 }),
    })
    .map(({ mailbox, id, delayMs, retentionMs, body }): CallFor<'send'> => [
      0,
      'send',
      [mailbox, id, '{}', delayMs, [retentionMs, mailbox]],
      body,
    ])
  const batches = fc.array(fc.array(call, { maxLength: 30 }), { maxLength: 4 })

  /** Without numbers, of which those that were tried before have used up some. */
  const keptIn = (books: Books): unknown[] => {
    const { messages, bodies } = contentsOf(books)
    return [
      messages.map(([mailbox, , id, , ...rest]) => [mailbox, id, ...rest]),
      bodies.map(([, ...rest]) => rest),
    ]
  }

  it('does for many what it does one by one, in their order', () => {
    const holds = fc.property(batches, (all) => {
      const [together, oneByOne] = two.files
      for (const books of two.files) empty(books)
      for (const [at, batch] of all.entries()) {
        for (const books of two.files) books.nowMs = 1000 + 10 * at
        expect(send(together, batch)).toEqual(batch.map(() => null))
        for (const one of batch) send(oneByOne, [one])
      }
      expect(keptIn(together)).toEqual(keptIn(oneByOne))
      expect([together.filled, together.expired]).toEqual([oneByOne.filled, oneByOne.expired])
    })
    fc.assert(holds)
  })
})
