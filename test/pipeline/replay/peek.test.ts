import { create, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { msOf, quarantined, seal, unseal } from '../../../src/pipeline/dead/envelope.ts'
import { peekEnvelope } from '../../../src/pipeline/replay/peek.ts'
import { DlqMessageSchema } from '../../../src/pipeline/proto/redrive/pipeline/v1/dlq_pb.ts'

const text = fc.string({ maxLength: 30 }).map((value) => value.toWellFormed())
const bytes = fc.uint8Array({ maxLength: 60 }).map((value) => Buffer.from(value))

const dead = fc.record({
  record: fc.record({
    topic: text,
    partition: fc.nat(1000),
    offset: fc.nat(),
    timestampMs: fc.nat(),
    key: fc.option(bytes, { nil: undefined }),
    value: bytes,
    headers: fc.array(fc.tuple(bytes, fc.option(bytes)), { maxLength: 4 }),
  }),
  isStream: fc.boolean(),
  cluster: text,
  graph: text,
  node: fc.string({ minLength: 1, maxLength: 9 }).map((value) => value.toWellFormed()),
  errorType: text,
  message: text,
  failedMs: fc.nat(),
  firstFailedMs: fc.nat(),
  retries: fc.nat(9),
  reprocessed: fc.nat(9),
  quarantined: fc.boolean(),
  replayable: fc.boolean(),
})

const seenIn = (sealed: Buffer): object | undefined => {
  const found = peekEnvelope(sealed)
  return found && { ...found, errorMessage: found.errorMessage }
}

const [plain] = fc.sample(dead, { numRuns: 1, seed: 1 })

describe('peekEnvelope', () => {
  it('agrees with the general decoder', () => {
    fc.assert(
      fc.property(dead, (one) => {
        const sealed = seal(one)
        const { message, value, isStream } = unseal(sealed)!
        expect(seenIn(sealed)).toEqual({
          errorType: message.errorType,
          errorMessage: message.errorMessage,
          failedMs: msOf(message.failedAt, 0),
          firstFailedMs: msOf(message.firstFailedAt, 0),
          node: message.failedNodeId,
          graph: message.graphId,
          topic: message.originalTopic,
          partition: message.originalPartition,
          reprocessed: message.dlqReprocessCount,
          key: message.originalKey && Buffer.from(message.originalKey),
          headers: message.originalHeaders.map(({ name, value: given }) => [
            Buffer.from(name),
            given ? Buffer.from(given) : null,
          ]),
          replayable: message.replayable ?? true,
          value: Buffer.from(value),
          isStream,
        })
        expect(peekEnvelope(sealed)?.headers).toEqual(one.record.headers)
        expect(seenIn(quarantined(sealed, 1))).toEqual(seenIn(sealed))
      }),
    )
  })

  it('returns undefined for an envelope truncated anywhere', () => {
    const sealed = seal(plain!)
    expect(peekEnvelope(sealed)).toBeDefined()
    for (let length = 0; length < sealed.length; length++)
      expect(peekEnvelope(sealed.subarray(0, length)), `${length} bytes`).toBe(undefined)
  })

  it('reads numbers of any size, and the last occurrence counts', () => {
    const numbers = fc.oneof(fc.integer(), fc.integer({ min: -3, max: 300 }))
    fc.assert(
      fc.property(numbers, numbers, (partition, reprocessed) => {
        const extraFields = create(DlqMessageSchema, {
          originalPartition: partition,
          dlqReprocessCount: reprocessed,
        })
        const sealed = Buffer.concat([seal(plain!), toBinary(DlqMessageSchema, extraFields)])
        const { message } = unseal(sealed)!
        expect(peekEnvelope(sealed)).toMatchObject({
          partition: message.originalPartition,
          reprocessed: message.dlqReprocessCount,
        })
      }),
    )
  })

  it('skips unknown fields', () => {
    const writer = new BinaryWriter()
    writer.tag(90, WireType.Bit32).fixed32(7).tag(91, WireType.Bit64).fixed64(7)
    writer.tag(92, WireType.LengthDelimited).string('x').tag(93, WireType.Varint).int64(-7)
    const sealed = seal(plain!)
    expect(seenIn(Buffer.concat([writer.finish(), sealed]))).toEqual(seenIn(sealed))
  })

  it('survives random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (any) => {
        peekEnvelope(Buffer.from(any))
      }),
    )
    fc.assert(
      fc.property(dead, fc.double({ min: 0, max: 1, noNaN: true }), (one, share) => {
        const sealed = seal(one)
        const part = sealed.subarray(0, Math.floor(sealed.length * share))
        expect(Boolean(peekEnvelope(part))).toBe(Boolean(unseal(part)))
      }),
    )
  })
})
