import { compatibilityPartitioner } from '@platformatic/kafka'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hashOf, partitionOf } from '../../../src/backends/kafka/partition.ts'
import { messageOf } from '../../../src/backends/kafka/sender.ts'

/** Keys in hex with their hash, as `org.apache.kafka.common.utils.Utils.murmur2` of the Java client 4.2.1 computes it. */
const vectors: readonly (readonly [key: string, hash: number])[] = [
  ['', 275646681],
  ['61', -1563381124],
  ['6162', 316155434],
  ['616263', 479470107],
  ['61626364', -1323649548],
  ['6b6579', -1079937367],
  ['6f726465722d3432', 501153024],
  ['4772c3bcc39f65', 1190824359],
  ['e697a5e69cac', -700811021],
  ['b9c5619afba7bc34d30643feab', -634221621],
  ['9262bf29c69a5b9d233faf27b01b8e', 1432992285],
  ['f59208740b8f6871058ff50df0404986c894b62021fb22109161', -817982621],
  ['7c815171bb60edce8bc8c1199df06481f2', -1272410830],
  ['73e83ebde336', -1075220500],
  ['1780fc103a95c98764511d281b2242791359e6d057faf6a33ceeef9e128908', -35396729],
  ['8c', -1326909658],
  ['48ee8a2b9619e33c55031737e586a2', -1945869825],
]

describe('partitionOf', () => {
  it.each(vectors)('gives the key %s the partition that Java gives it', (hex, hash) => {
    const key = Buffer.from(hex, 'hex')
    const positive = hash & 0x7fffffff
    expect(hashOf(key)).toBe(positive)
    for (const count of [1, 2, 3, 5, 6, 7, 12, 100])
      expect(partitionOf(key, count)).toBe(positive % count)
    // What is sent without a partition goes there as well.
    const sent = messageOf({ topic: 't', written: { key, value: key, headers: new Map() } })
    expect(sent.partition).toBe(positive)
  })

  it('agrees with the compatible way of the client for any key', () => {
    const keys = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(keys, fc.integer({ min: 1, max: 1000 }), (key, partitions) => {
        const message = { topic: 't', key, value: key }
        const number = compatibilityPartitioner(message, key)
        expect(partitionOf(key, partitions)).toBe(number % partitions)
      }),
      { numRuns: 500 },
    )
  })
})
