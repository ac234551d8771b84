import { describe, expect, it } from 'vitest'
import { partitionForKey } from '../../../src/backends/kafka/sender.ts'
import type { OutgoingRecord } from '../../../src/backends/kafka/sender.ts'
import { keyOfDead, unseal } from '../../../src/pipeline/dead/envelope.ts'
import { peekEnvelope } from '../../../src/pipeline/replay/peek.ts'
import { lineageIn } from '../../../src/pipeline/dead/lineage.ts'
import { asQuarantined, asReplayed } from '../../../src/pipeline/replay/record.ts'
import { nodeSettings } from '../../../src/pipeline/graph/settings.ts'
import { putOf, sentMs, type Dead } from '../dead-records.ts'
import { streamOf } from '../pipeline-bench.ts'

const settings = nodeSettings({ cluster: 'prod', node: 'n1', inputTopic: 'in' })
const replayTarget = { topic: 'in', partitions: 2, id: 'r1', node: 'n1', nowMs: 5 }
const key = keyOfDead({ topic: 'in', partition: 0, offset: 1, timestampMs: sentMs })

const sealed = (more: Partial<Dead>): Buffer =>
  putOf({ id: 's1', offset: 1, ...more }, settings, 0).value
const replayed = (more: Partial<Dead>, to = replayTarget): OutgoingRecord | undefined =>
  asReplayed({ key, timestampMs: 7 }, peekEnvelope(sealed(more))!, to)

describe('asReplayed', () => {
  it('returns the dead record, byte for byte, with key, headers and lineage', () => {
    const headers = { trace: 'abc', 'redrive-lineage': '{"replays":1}' }
    const { topic, partition, record: written } = replayed({ key: 'k', headers, reprocessed: 1 })!
    expect([topic, partition]).toEqual(['in', partitionForKey(Buffer.from('k'), 2)])
    expect(written.key).toEqual(Buffer.from('k'))
    expect(written.value).toEqual(streamOf('s1'))
    const all = [...written.headers]
    expect(all.map(([name]) => name.toString())).toEqual(['trace', 'redrive-lineage'])
    expect(lineageIn(all)).toEqual({
      reprocessed: 2,
      firstFailedMs: Date.UTC(2026, 0, 1, 12),
      dead: key.toString(),
      replay: 'r1',
    })
  })

  it('sends a record without a key to its original partition, if it exists', () => {
    expect(replayed({ partition: 1 })).toMatchObject({ partition: 1 })
    expect(replayed({ partition: 2 })).not.toHaveProperty('partition')
    expect(replayed({ partition: 1 }, { ...replayTarget, topic: 'other' })).toMatchObject({
      topic: 'other',
    })
    const elsewhere = replayed({ partition: 1 }, { ...replayTarget, topic: 'other' })
    expect(elsewhere).not.toHaveProperty('partition')
  })

  it('returns undefined if hops must be reset in a value that is not a stream', () => {
    const errorType = 'MAX_HOPS'
    expect(replayed({ errorType, value: Buffer.from([0xff]) })).toBe(undefined)
  })
})

describe('asQuarantined', () => {
  it('returns the dead record with key and headers, marked as quarantined', () => {
    const headers = [[Buffer.from('trace'), Buffer.from('abc')]] as const
    const { topic, record: written } = asQuarantined(
      { key, value: sealed({}), headers },
      'quarantine',
      9,
    )
    expect([topic, written.key]).toEqual(['quarantine', key])
    expect([...written.headers]).toEqual(headers)
    const { message, value } = unseal(written.value!)!
    expect(message).toMatchObject({ quarantined: true, errorType: 'TIMEOUT' })
    expect(Buffer.from(value)).toEqual(streamOf('s1'))
  })
})
