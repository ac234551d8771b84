import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { timestampMs } from '@bufbuild/protobuf/wkt'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  keyOfDead,
  msOf,
  quarantined,
  seal,
  unseal,
  type DeadRecord,
} from '../../../src/pipeline/dead/envelope.ts'
import { DlqMessageSchema } from '../../../src/pipeline/proto/redrive/pipeline/v1/dlq_pb.ts'
import { readStream } from '../../../src/pipeline/stream.ts'
import { wireFields } from '../wire-reader.ts'

const hexOf = (text: string): string => Buffer.from(text).toString('hex')
const bytesOf = (...hex: string[]): Buffer => Buffer.from(hex.join('').replaceAll(' ', ''), 'hex')

/** The eight basic fields, encoded by hand. */
const eight = bytesOf(
  '0a 04 0a 02 7331', // 1, bytes: a stream with the id s1
  '12 07 54494d454f5554', // 2, bytes: TIMEOUT
  '1a 04 6c617465', // 3, bytes: late
  '22 06 08 e4e2cfaa06', // 4, bytes: a timestamp, 1700000100 seconds
  '28 03', // 5, number: 3 retries
  '32 02 6e31', // 6, bytes: n1
  '3a 02 696e', // 7, bytes: in
  '40 2a', // 8, number: the offset 42
)

/** A full envelope, encoded by hand. The value comes last. */
const full = bytesOf(
  '12 07 54494d454f5554',
  '1a 04 6c617465',
  '22 06 08 e4e2cfaa06',
  '28 03',
  '32 02 6e31',
  '3a 02 696e',
  '40 2a',
  '48 03', // 9, number: partition 3
  '50 02', // 10, number: replayed twice
  '58 01', // 11, number: quarantined
  '62 06 08 e4e2cfaa06', // 12, bytes: when
  '6a 06 08 81e2cfaa06', // 13, bytes: the first failure, 1700000001 seconds
  '72 04 70726f64', // 14, bytes: prod
  '7a 04 646f6373', // 15, bytes: docs
  '8201 01 6b', // 16, bytes: the key k
  '8a01 06 0a0168 120176', // 17, bytes: a header h: v
  '8a01 06 0a0168 1201ff', // 17 again: another of the same name, with a byte that is no text
  '9201 0c 08 80e2cfaa06 10 80cab5ee01', // 18, bytes: 1700000000 seconds, 500000000 nanoseconds
  'a201 0b 4572726f723a206c617465', // 20, bytes: Error: late
  'aa01 09 4554494d45444f5554', // 21, bytes: ETIMEDOUT
  'b001 00', // 22, number: not replayable
  '0a 04 0a 02 7331',
)

const dead: DeadRecord = {
  record: {
    topic: 'in',
    partition: 3,
    offset: 42,
    timestampMs: 1_700_000_000_500,
    key: Buffer.from('k'),
    value: bytesOf('0a 02 7331'),
    headers: [
      [Buffer.from('h'), Buffer.from('v')],
      [Buffer.from('h'), Buffer.from([0xff])],
    ],
  },
  isStream: true,
  cluster: 'prod',
  graph: 'docs',
  node: 'n1',
  errorType: 'TIMEOUT',
  message: 'late',
  code: 'ETIMEDOUT',
  stack: 'Error: late',
  failedMs: 1_700_000_100_000,
  firstFailedMs: 1_700_000_001_000,
  retries: 3,
  reprocessed: 2,
  quarantined: true,
  replayable: false,
}

const sealed = (more: Partial<DeadRecord> = {}): Buffer => seal({ ...dead, ...more })
const withValue = (value: Uint8Array): DeadRecord['record'] => ({
  ...dead.record,
  value: Buffer.from(value),
})

describe('the encoded envelope', () => {
  it('has the eight basic fields with their numbers', () => {
    const { message, value } = unseal(eight)!
    expect(readStream(value)?.streamId).toBe('s1')
    expect(message).toMatchObject({
      errorType: 'TIMEOUT',
      errorMessage: 'late',
      retryCount: 3,
      failedNodeId: 'n1',
      originalTopic: 'in',
      originalOffset: 42n,
    })
    expect(timestampMs(message.failedAt!)).toBe(1_700_000_100_000)
    const whole = fromBinary(DlqMessageSchema, eight)
    expect(Buffer.from(toBinary(DlqMessageSchema, whole)).toString('hex')).toBe(
      eight.toString('hex'),
    )
  })

  it('has these bytes', () => {
    expect(sealed().toString('hex')).toBe(full.toString('hex'))
  })

  it('is read the same by a reader that knows only the wire format', () => {
    expect(wireFields(eight)).toEqual([
      [1, 2, '0a027331'],
      [2, 2, hexOf('TIMEOUT')],
      [3, 2, hexOf('late')],
      [4, 2, '08e4e2cfaa06'],
      [5, 0, 3n],
      [6, 2, hexOf('n1')],
      [7, 2, hexOf('in')],
      [8, 0, 42n],
    ])
    const numbers = wireFields(sealed()).map(([number]) => number)
    expect(numbers).toEqual([
      2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 17, 18, 20, 21, 22, 1,
    ])
    expect(wireFields(sealed({ isStream: false })).at(-1)).toEqual([19, 2, '0a027331'])
  })
})

describe('seal and unseal', () => {
  it('return the same record', () => {
    const { message, value, isStream } = unseal(sealed())!
    expect(isStream).toBe(true)
    expect(Buffer.from(value)).toEqual(dead.record.value)
    expect(message).toMatchObject({
      clusterId: 'prod',
      graphId: 'docs',
      originalPartition: 3,
      dlqReprocessCount: 2,
      quarantined: true,
      replayable: false,
      errorCode: 'ETIMEDOUT',
      errorStack: 'Error: late',
    })
    expect(Buffer.from(message.originalKey!)).toEqual(Buffer.from('k'))
    expect(message.originalHeaders.map(({ value }) => Buffer.from(value!).toString('hex'))).toEqual(
      ['76', 'ff'],
    )
  })

  it('preserve every value byte for byte, stream or not', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const { value, isStream } = unseal(sealed({ record: withValue(bytes), isStream: false }))!
        expect(isStream).toBe(false)
        expect(new Uint8Array(value)).toEqual(bytes)
      }),
    )
  })

  it.each([
    ['fields that nobody here knows', 'c23e 03 616263 0a 02 7331'],
    ['fields in another order', '38 05 0a 02 7331'],
    ['a number in more bytes than it needs', '0a 8200 7331'],
    ['a field that comes twice', '0a 01 61 0a 02 7331'],
    ['a default that is written out', '0a 02 7331 38 00'],
  ])('preserve a stream with %s', (_, hex) => {
    const bytes = bytesOf(hex)
    const { value, isStream } = unseal(sealed({ record: withValue(bytes) }))!
    expect(isStream).toBe(true)
    expect(readStream(value)?.streamId).toBe('s1')
    expect(Buffer.from(value).toString('hex')).toBe(bytes.toString('hex'))
  })

  it('distinguish an empty value, and an absent key from an empty one', () => {
    const empty = unseal(sealed({ record: withValue(Buffer.alloc(0)), isStream: false }))!
    expect(empty.value).toHaveLength(0)
    const keyless = unseal(sealed({ record: { ...dead.record, key: undefined } }))!
    expect(keyless.message.originalKey).toBeUndefined()
    const blank = unseal(sealed({ record: { ...dead.record, key: Buffer.alloc(0) } }))!
    expect(blank.message.originalKey).toHaveLength(0)
  })

  it('store the replacement instead of the value', () => {
    const { value } = unseal(sealed({ value: bytesOf('0a 02 7332') }))!
    expect(Buffer.from(value).toString('hex')).toBe('0a027332')
  })

  it('limit messages, and make them valid text', () => {
    const { message } = unseal(
      sealed({ message: '\u{1F600}'.repeat(9000).slice(1), stack: 'x'.repeat(50_000) }),
    )!
    expect(message.errorMessage).toHaveLength(10_000)
    expect(message.errorMessage.isWellFormed()).toBe(true)
    expect(message.errorStack).toHaveLength(20_000)
  })
})

describe('unseal', () => {
  it.each([
    ['a stream', true],
    ['what is none', false],
  ])('recognises a truncated envelope of %s at any length', (_, isStream) => {
    const bytes = sealed({ isStream })
    for (let length = 0; length < bytes.length; length++)
      expect(unseal(bytes.subarray(0, length)), `${length} bytes`).toBeUndefined()
    expect(unseal(bytes)).toBeDefined()
  })

  it('never throws, and never invents a value', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        const envelope = unseal(bytes)
        if (envelope) expect(Buffer.from(bytes).includes(Buffer.from(envelope.value))).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  it('never throws for an envelope with a wrong byte', () => {
    const bytes = sealed()
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 0, max: 255 }), (at, byte) => {
        const broken = Buffer.from(bytes)
        broken[at] = byte
        unseal(broken)
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['nothing', ''],
    ['a stream that lies there by itself', '0a 02 7331'],
    ['an envelope without a value', '12 07 54494d454f5554 32 02 6e31'],
    ['a value without a failure', '0a 04 0a 02 7331'],
  ])('does not take %s for an envelope', (_, hex) => {
    expect(unseal(bytesOf(hex))).toBeUndefined()
  })

  it('reads a stream in several parts as one, like protobuf', () => {
    const parts = bytesOf('0a 04 0a 02 7331', '12 01 54', '0a 02 38 05')
    const { value } = unseal(parts)!
    expect(Buffer.from(value).toString('hex')).toBe('0a0273313805')
    expect(readStream(value)).toMatchObject({ streamId: 's1', hopCount: 5 })
  })
})

describe('quarantined', () => {
  it('marks the same envelope, and changes nothing else', () => {
    const before = unseal(sealed({ quarantined: false }))!
    const after = unseal(quarantined(sealed({ quarantined: false }), 1_700_000_200_000))!
    expect(before.message.quarantined).toBe(false)
    expect(after.message.quarantined).toBe(true)
    expect(msOf(after.message.quarantinedAt, 0)).toBe(1_700_000_200_000)
    expect(Buffer.from(after.value)).toEqual(Buffer.from(before.value))
    const { quarantined: _, quarantinedAt: __, ...rest } = after.message
    expect(before.message).toMatchObject(rest)
  })
})

describe('keyOfDead', () => {
  const place = { topic: 'in', partition: 3, offset: 42, timestampMs: 1_700_000_000_000 }

  it('is a UUID, and the same for the same record', () => {
    const key = keyOfDead(place).toString()
    expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(keyOfDead({ ...place }).toString()).toBe(key)
  })

  it('differs for every other record', () => {
    const others = [
      place,
      { ...place, offset: 43 },
      { ...place, partition: 4 },
      { ...place, topic: 'out' },
      { ...place, partition: 34, offset: 2 },
      // In a topic that was deleted and recreated.
      { ...place, timestampMs: place.timestampMs + 1 },
    ]
    expect(new Set(others.map((other) => keyOfDead(other).toString())).size).toBe(others.length)
  })
})

describe('msOf', () => {
  it('returns the default for a missing timestamp', () => {
    expect(msOf(create(DlqMessageSchema).failedAt, 7)).toBe(7)
    expect(msOf(unseal(eight)!.message.failedAt, 7)).toBe(1_700_000_100_000)
  })
})
