import { describe, expect, it } from 'vitest'
import type { StoredRecord } from '../../../src/backends/kafka/record.ts'
import { deadStreamOf } from '../../../src/pipeline/dead/stream.ts'
import { nodeSettings } from '../../../src/pipeline/graph/settings.ts'
import { putOf, type Dead } from '../dead-records.ts'
import { streamOf } from '../pipeline-bench.ts'

const settings = nodeSettings({ cluster: 'prod', node: 'n1', graph: 'g1', inputTopic: 'in' })
const found = { cluster: 'prod', node: 'n1', isQuarantine: false }

function stored(dead: Dead, more: Partial<StoredRecord> = {}): StoredRecord {
  const { key, value } = putOf(dead, settings, 0)
  const place = { topic: 'dlq.prod.n1', partition: 2, offset: 5, timestampMs: 1_000_000 }
  return { ...place, key: Buffer.from(key ?? ''), value, headers: [], ...more }
}

describe('deadStreamOf', () => {
  it('reads all fields of an envelope', () => {
    const headers = { trace: 'abc' }
    const dead = deadStreamOf(
      stored({ id: 's1', key: 'k', offset: 7, headers, code: 'E1', stack: 'at x', reprocessed: 2 }),
      found,
    )
    expect(dead).toMatchObject({
      source: {
        kind: 'pipeline',
        cluster: 'prod',
        graph: 'g1',
        node: 'n1',
        topic: 'in',
        partition: 0,
        offset: '7',
        streamId: 's1',
        hops: 0,
      },
      errorType: 'TIMEOUT',
      message: 'it took too long',
      code: 'E1',
      stack: 'at x',
      retries: 3,
      firstFailedAt: '2026-01-01T12:00:00.000Z',
      headers,
      quarantined: false,
      metadata: {
        dlqTopic: 'dlq.prod.n1',
        dlqPartition: 2,
        dlqOffset: 5,
        reprocessed: 2,
        lastFailedAt: '2026-01-02T00:00:00.000Z',
        key: Buffer.from('k').toString('base64'),
      },
    })
    expect(Buffer.from(dead.body.bytes)).toEqual(streamOf('s1'))
    expect(dead.body.contentType).toContain('PipeStream')
  })

  it('stores a record that is not an envelope, or truncated, unchanged', () => {
    const whole = stored({ id: 's1', offset: 7 })
    for (const value of [Buffer.from('junk'), whole.value.subarray(0, 40)]) {
      const dead = deadStreamOf({ ...whole, value }, found)
      expect(dead).toMatchObject({ errorType: 'MALFORMED', source: { node: 'n1', streamId: '' } })
      expect(Buffer.from(dead.body.bytes)).toEqual(value)
    }
  })

  it('identifies foreign records by their offset', () => {
    const record = stored({ id: 's1', offset: 7 }, { key: undefined })
    expect(deadStreamOf(record, found).deadKey).toBe('dlq.prod.n1:2:5')
  })
})
