import { defaultPartitioner } from '@platformatic/kafka'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { partitionOf } from '../../src/kafka/partition.ts'

describe('partitionOf', () => {
  it('gives each key the partition that the client gives it', () => {
    const keys = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(keys, fc.integer({ min: 1, max: 1000 }), (key, partitions) => {
        const message = { topic: 't', key, value: key }
        const number = defaultPartitioner(message, key)
        expect(partitionOf(key, partitions)).toBe(number % partitions)
      }),
      { numRuns: 500 },
    )
  })
})
