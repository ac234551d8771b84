import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromText, toText } from '../../../src/stores/postgres/text.ts'

/** Any 16-bit units, with the awkward ones often. */
const unit = fc.oneof(
  fc.constantFrom(0, 0x10, 0x30, 0xd800, 0xdbff, 0xdc00, 0xdfff),
  fc.integer({ min: 0, max: 0xffff }),
)
const text = fc.array(unit, { maxLength: 12 }).map((units) => String.fromCharCode(...units))

describe('toText and fromText', () => {
  it('produce well-formed strings without NUL, and restore the original', () => {
    fc.assert(
      fc.property(text, (given) => {
        const kept = toText(given)
        expect(kept.isWellFormed()).toBe(true)
        expect(kept).not.toContain('\0')
        expect(fromText(kept)).toBe(given)
      }),
    )
  })

  it('leave ordinary strings unchanged', () => {
    for (const plain of ['', 'orders', 'ünï 🦊', "it's \\ %_"]) expect(toText(plain)).toBe(plain)
  })
})
