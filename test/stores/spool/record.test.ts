import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { piecesOf, recordOf, type Piece } from '../../../src/stores/spool/record.ts'

const bodies = ['{"a":1}', '{"b":"ÿ\u0000"}', '{"c":[3]}'].map((text) => Buffer.from(text))
const journal = Buffer.concat(bodies.map(recordOf))
const ends = bodies.map((_, at) => Buffer.concat(bodies.slice(0, at + 1).map(recordOf)).length)

const found = (pieces: readonly Piece[]): string[] =>
  pieces.flatMap((piece) => ('body' in piece ? [piece.body.toString()] : []))
const damage = (pieces: readonly Piece[]): string[] =>
  pieces.flatMap((piece) => ('damage' in piece ? [piece.damage] : []))

function expectNoGaps(pieces: readonly Piece[], length: number): void {
  let at = 0
  for (const { start, end } of pieces) {
    expect(start).toBe(at)
    expect(end).toBeGreaterThan(start)
    at = end
  }
  expect(at).toBe(length)
}

describe('a journal', () => {
  it('gives back the bodies that were written', () => {
    expect(found([...piecesOf(journal)])).toEqual(bodies.map(String))
    expect(found([...piecesOf(journal, ends[0])])).toEqual(bodies.slice(1).map(String))
  })

  it('that is cut at any byte has all records before the cut, and the rest is torn', () => {
    for (let length = 0; length < journal.length; length++) {
      const pieces = [...piecesOf(journal.subarray(0, length))]
      const whole = ends.filter((end) => end <= length).length
      expect(found(pieces)).toEqual(bodies.slice(0, whole).map(String))
      expect(damage(pieces)).toEqual(length === (ends[whole - 1] ?? 0) ? [] : ['torn'])
      expectNoGaps(pieces, length)
    }
  })

  it('with any bit flipped loses that record alone, and tells', () => {
    for (let bit = 0; bit < journal.length * 8; bit++) {
      const flipped = Buffer.from(journal)
      flipped[bit >> 3]! ^= 1 << (bit & 7)
      const hit = ends.findIndex((end) => bit >> 3 < end)
      const pieces = [...piecesOf(flipped)]
      expect(found(pieces)).toEqual(bodies.filter((_, at) => at !== hit).map(String))
      expect(damage(pieces)).toHaveLength(1)
      expectNoGaps(pieces, journal.length)
    }
  })

  it('cannot be given records by what a body says', () => {
    const forged = recordOf(Buffer.from('{"forged":true}'))
    const body = Buffer.from(
      JSON.stringify({ text: forged.toString('latin1'), raw: forged.toString() }),
    )
    const flipped = recordOf(body)
    flipped[5]! ^= 1
    expect(found([...piecesOf(flipped)])).toEqual([])
  })

  it('of any bytes at all is read to its end', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.uint8Array(), fc.constant(recordOf(bodies[0]!)))),
        (parts) => {
          const bytes = Buffer.concat(parts)
          expectNoGaps([...piecesOf(bytes)], bytes.length)
        },
      ),
    )
  })
})
