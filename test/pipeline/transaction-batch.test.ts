import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import type { Group } from '../../src/backends/kafka/group.ts'
import { Progress } from '../../src/backends/kafka/progress.ts'
import type { OutgoingRecord } from '../../src/backends/kafka/sender.ts'
import type { Transactor } from '../../src/backends/kafka/transactor.ts'
import { TransactionBatch } from '../../src/pipeline/transaction-batch.ts'
import { begun, type Entry, type OurPart } from '../../src/pipeline/our-part.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

describe('TransactionBatch', () => {
  const position = { topic: 'in', partition: 0, offset: 0, metadata: '1' }
  const group = { membership: { generationId: 1, memberId: 'me' } } as Group

  const part = (): OurPart =>
    begun({
      ...position,
      position: 0,
      progress: new Progress(0, '1'),
      isRevoked: false,
      isLost: false,
      hasRoom: () => true,
      onRecords: () => {},
      onReset: () => {},
    })

  const entryOf = (of: OurPart): Entry => {
    const value = Buffer.from('one')
    const record = { ...position, timestampMs: 0, key: undefined, value, headers: [] }
    return { part: of, record, lane: undefined, isRunning: false, isFailing: false }
  }

  it('sends a deferred record before later ones of its lane, once a topic accepts it', async () => {
    const clock = fakeClock()
    const ours = part()
    const sent: string[] = []
    const refused = new Set(['0'])
    const send = async (outgoing: readonly OutgoingRecord[]): Promise<void> => {
      const topics = outgoing.map(({ topic }) => topic)
      if (topics.some((topic) => refused.has(topic))) throw new RedriveError('TOO_LARGE', 'no')
      sent.push(...topics)
    }
    const transactionBatch = new TransactionBatch({
      clock,
      transactor: { send } as unknown as Transactor,
      settled: () => {},
      changed: () => {},
      onError: () => {},
    })
    const copy = { value: Buffer.from('out'), headers: new Map() }
    for (const [offset, lane] of ['a', 'a', 'b', 'a'].entries()) {
      const { record, ...entry } = entryOf(ours)
      const outgoing = [{ topic: String(offset), record: copy }]
      transactionBatch.add({
        entry: { ...entry, lane, record: { ...record, offset } },
        work: { outgoing },
      })
    }
    await transactionBatch.carry(group, [position])
    await transactionBatch.carry(group, [position])
    expect(sent).toEqual(['2'])
    expect(transactionBatch.held(ours).map(({ record }) => record.offset)).toEqual([0, 1, 3])
    refused.clear()
    await clock.advance(5000)
    await transactionBatch.carry(group, [position])
    expect(sent).toEqual(['2', '0', '1', '3'])
    expect(transactionBatch.held(ours)).toEqual([])
  })

  it('reports committed records, even of a partition that was lost meanwhile', async () => {
    const committing = Promise.withResolvers<void>()
    const settled: Entry[] = []
    const transactionBatch = new TransactionBatch({
      clock: fakeClock(),
      transactor: { send: () => committing.promise } as unknown as Transactor,
      settled: ({ entry }) => settled.push(entry),
      changed: () => {},
      onError: () => {},
    })
    const ours = part()
    const entry = entryOf(ours)
    transactionBatch.add({ entry, work: { outgoing: [] } })
    const carried = transactionBatch.carry(group, [position])
    transactionBatch.forget(ours)
    committing.resolve()
    await carried
    expect(settled).toEqual([entry])
    expect(transactionBatch.parts()).toEqual([])
  })
})
