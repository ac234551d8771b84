import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pack, unpack } from '../../../src/mailboxes/redis/packing.ts'

describe('pack', () => {
  it('is reversed by unpack', () => {
    const messages = fc.record(
      {
        bytes: fc.uint8Array(),
        contentType: fc.string(),
        headers: fc.dictionary(fc.string(), fc.string(), { noNullPrototype: true }),
        replyTo: fc.string(),
      },
      { requiredKeys: ['bytes', 'contentType', 'headers'], noNullPrototype: true },
    )
    const property = fc.property(messages, (message) => {
      expect(unpack(pack(message))).toEqual(message)
    })
    fc.assert(property)
  })
})

describe('unpack', () => {
  it.each([
    ['nothing', Buffer.alloc(0)],
    ['text', Buffer.from('{"job":1}')],
    ['a length that is too long', Buffer.from([1, 0, 0, 0, 9, 0x7b, 0x7d])],
    ['no JSON', Buffer.from([1, 0, 0, 0, 2, 0x7b, 0x7b])],
    ['JSON of nothing', Buffer.concat([Buffer.from([1, 0, 0, 0, 4]), Buffer.from('null')])],
    ['strange headers', strange({ contentType: 'text/plain', headers: { a: 1 } })],
    ['a list for headers', strange({ contentType: 'text/plain', headers: [] })],
    ['no content type', strange({ headers: {} })],
  ])('returns %s as unchanged bytes', (_what, bytes) => {
    const { bytes: delivered, ...rest } = unpack(bytes)
    expect(Buffer.from(delivered)).toEqual(bytes)
    expect(rest).toEqual({ contentType: 'application/octet-stream', headers: {} })
  })
})

function strange(about: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(about))
  return Buffer.concat([Buffer.from([1, 0, 0, 0, json.length]), json])
}
