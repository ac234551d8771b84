import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  isSpent,
  lineageIn,
  withLineage,
  withoutLineage,
  type Headers,
} from '../../../src/pipeline/dead/lineage.ts'

const header = (name: string, value: string): readonly [Buffer, Buffer] => [
  Buffer.from(name),
  Buffer.from(value),
]
const own: Headers = [
  header('trace', '1'),
  header('trace', '2'),
  [Buffer.from([0xff]), Buffer.from([0])],
]

describe('lineage', () => {
  it('is told by headers, beside those that were there', () => {
    const lineage = { reprocessed: 2, firstFailedMs: 1_700_000_000_000, dead: 'k', replay: 'r' }
    const headers = withLineage(own, lineage)
    expect(lineageIn(headers)).toEqual(lineage)
    expect(headers.slice(0, own.length)).toEqual(own)
    expect(withoutLineage(headers)).toEqual(own)
  })

  it('replaces what was told before', () => {
    const once = withLineage(own, { reprocessed: 1, dead: 'a', replay: 'x' })
    const twice = withLineage(once, { reprocessed: 2, dead: 'b' })
    expect(lineageIn(twice)).toEqual({ reprocessed: 2, dead: 'b' })
    expect(twice).toHaveLength(own.length + 1)
  })

  it('is none for a record that was never replayed', () => {
    expect(lineageIn(own)).toEqual({ reprocessed: 0 })
  })

  it.each(['-1', '1.5', '"2"', '1e9', 'null', '[]'])('takes %s for no count of replays', (text) => {
    expect(lineageIn([header('redrive-lineage', `{"replays":${text}}`)]).reprocessed).toBe(0)
  })

  it.each(['{"firstFailedAt":"yesterday"}', '{"dead":1,"replay":{}}', '{', '7', 'null', ''])(
    'takes %s for nothing',
    (text) => {
      expect(lineageIn([header('redrive-lineage', text)])).toEqual({ reprocessed: 0 })
    },
  )

  it('never throws, whatever the headers are, and can be told again', () => {
    const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
    const names = fc.oneof(bytes, fc.constant(Buffer.from('redrive-lineage')))
    const values = fc.oneof(
      bytes,
      fc.json().map((text) => Buffer.from(text)),
      fc
        .record({
          replays: fc.anything(),
          firstFailedAt: fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
          dead: fc.string({ unit: 'binary' }),
        })
        .map((told) =>
          Buffer.from(
            JSON.stringify(told, (_, value: unknown) => (typeof value === 'bigint' ? 0 : value)),
          ),
        ),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(names, values)), (headers) => {
        const lineage = lineageIn(headers)
        expect(lineage.reprocessed).toBeGreaterThanOrEqual(0)
        // Moments that no letter can have are pulled back, once.
        const told = lineageIn(withLineage(headers, lineage))
        expect({ ...told, firstFailedMs: 0 }).toEqual({ ...lineage, firstFailedMs: 0 })
        expect(lineageIn(withLineage(headers, told))).toEqual(told)
      }),
    )
  })
})

describe('isSpent', () => {
  it('allows as many replays as are said, and not one more', () => {
    expect([0, 1, 2, 3, 4].map((count) => isSpent(count, 3))).toEqual([
      false,
      false,
      false,
      true,
      true,
    ])
    expect(isSpent(0, 0)).toBe(true)
  })
})
