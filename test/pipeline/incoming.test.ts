import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { incoming } from '../../src/pipeline/incoming.ts'
import { aStream, log, readStream, writeStream } from '../../src/pipeline/stream.ts'

const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }))
const strings = fc.dictionary(text, text, { maxKeys: 3 })
const streams = fc
  .record({
    streamId: text,
    hopCount: fc.oneof(fc.nat(20), fc.integer()),
    processingPath: fc.array(text, { maxLength: 3 }),
    clusterId: text,
    attributes: strings,
    account: text,
    body: fc.uint8Array({ maxLength: 300 }),
    kind: fc.constantFrom('none', 'document', 'documentRef'),
    events: fc.nat(3),
  })
  .map(({ attributes, account, body, kind, events, ...rest }) => {
    const document = { id: account, body, contentType: 'text/plain', attributes }
    const stream = aStream({
      ...rest,
      metadata: { accountId: account, attributes },
      content:
        kind === 'document'
          ? { case: 'document', value: document }
          : kind === 'documentRef'
            ? { case: 'documentRef', value: { location: account, size: 5n } }
            : { case: undefined },
    })
    for (let n = 0; n < events; n++)
      log(stream, { atMs: 1_700_000_000_000 + n, node: account, event: 'failed', message: 'no' })
    return writeStream(stream)
  })

/** The outline of a record, and the decoded record. */
function isTrueOf(bytes: Buffer): void {
  const seen = incoming(bytes)
  const stream = readStream(bytes)
  expect(seen === undefined).toBe(stream === undefined)
  if (!seen || !stream) return
  expect(seen.stream).toEqual(stream)
  expect([seen.streamId, seen.hopCount]).toEqual([stream.streamId, stream.hopCount])
  expect(seen.isElsewhere).toBe(stream.content.case === 'documentRef')
}

describe('the outline of a record', () => {
  it('agrees with the decoded record', () => {
    fc.assert(fc.property(streams, isTrueOf), { numRuns: 300 })
  })

  it('agrees for a truncated or corrupt record', () => {
    fc.assert(
      fc.property(streams, fc.nat(), fc.nat(255), fc.nat(), (bytes, at, byte, length) => {
        const wrong = Buffer.from(bytes.subarray(0, length % (bytes.length + 1)))
        if (wrong.length > 0) wrong[at % wrong.length] = byte
        isTrueOf(wrong)
      }),
      { numRuns: 3000 },
    )
  })

  it('agrees for random bytes', () => {
    const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))
    fc.assert(fc.property(bytes, isTrueOf), { numRuns: 3000 })
  })
})
