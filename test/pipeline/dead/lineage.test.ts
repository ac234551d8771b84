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
  it('is written to a header, in addition to the existing ones', () => {
    const lineage = { reprocessed: 2, firstFailedMs: 1_700_000_000_000, dead: 'k', replay: 'r' }
    const headers = withLineage(own, lineage)
    expect(lineageIn(headers)).toEqual(lineage)
    expect(headers.slice(0, own.length)).toEqual(own)
    expect(withoutLineage(headers)).toEqual(own)
  })

  it('replaces an earlier lineage', () => {
    const once = withLineage(own, { reprocessed: 1, dead: 'a', replay: 'x' })
    const twice = withLineage(once, { reprocessed: 2, dead: 'b' })
    expect(lineageIn(twice)).toEqual({ reprocessed: 2, dead: 'b' })
    expect(twice).toHaveLength(own.length + 1)
  })

  it('is absent for a record that was never replayed', () => {
    expect(lineageIn(own)).toEqual({ reprocessed: 0 })
  })

  it.each(['-1', '1.5', '"2"', '1e9', 'null', '[]'])(
    'does not take %s for a count of replays',
    (text) => {
      expect(lineageIn([header('redrive-lineage', `{"replays":${text}}`)]).reprocessed).toBe(0)
    },
  )

  it.each(['{"firstFailedAt":"yesterday"}', '{"dead":1,"replay":{}}', '{', '7', 'null', ''])(
    'ignores %s',
    (text) => {
      expect(lineageIn([header('redrive-lineage', text)])).toEqual({ reprocessed: 0 })
    },
  )

  it('never throws for any headers, and can be written again', () => {
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
        .map((fields) =>
          Buffer.from(
            JSON.stringify(fields, (_, value: unknown) => (typeof value === 'bigint' ? 0 : value)),
          ),
        ),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(names, values)), (headers) => {
        const lineage = lineageIn(headers)
        expect(lineage.reprocessed).toBeGreaterThanOrEqual(0)
        // Timestamps that no letter can have are limited, once.
        const again = lineageIn(withLineage(headers, lineage))
        expect({ ...again, firstFailedMs: 0 }).toEqual({ ...lineage, firstFailedMs: 0 })
        expect(lineageIn(withLineage(headers, again))).toEqual(again)
      }),
    )
  })
})

describe('isSpent', () => {
  it('allows the maximum number of replays, and not one more', () => {
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
