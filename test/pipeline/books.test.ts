import { describe, expect, it } from 'vitest'
import type { Group } from '../../src/kafka/group.ts'
import { Progress } from '../../src/kafka/progress.ts'
import type { Transactor } from '../../src/kafka/transactor.ts'
import { Books } from '../../src/pipeline/books.ts'
import { begun, type Entry, type OurPart } from '../../src/pipeline/our-part.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

describe('Books', () => {
  const position = { topic: 'in', partition: 0, offset: 0, note: '1' }
  const group = { member: { generationId: 1, memberId: 'me' } } as Group

  const part = (): OurPart =>
    begun({
      ...position,
      position: 0,
      progress: new Progress(0, '1'),
      isLeaving: false,
      isLost: false,
      hasRoom: () => true,
      arrived: () => {},
      madeAnew: () => {},
    })

  const entryOf = (of: OurPart): Entry => {
    const value = Buffer.from('one')
    const record = { ...position, timestampMs: 0, key: undefined, value, headers: [] }
    return { part: of, record, lane: undefined, isRunning: false, isFailing: false }
  }

  it('says what is committed, also of a partition that was lost meanwhile: it comes to nobody again', async () => {
    const committing = Promise.withResolvers<void>()
    const settled: Entry[] = []
    const books = new Books({
      clock: fakeClock(),
      transactor: { carry: () => committing.promise } as unknown as Transactor,
      settled: ({ entry }) => settled.push(entry),
      changed: () => {},
      trouble: () => {},
    })
    const ours = part()
    const entry = entryOf(ours)
    books.add({ entry, work: { outgoing: [] } })
    const carried = books.carry(group, [position])
    books.forget(ours)
    committing.resolve()
    await carried
    expect(settled).toEqual([entry])
    expect(books.parts()).toEqual([])
  })
})
