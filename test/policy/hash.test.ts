import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hash64 } from '../../src/policy/hash.ts'

describe('hash64', () => {
  it('returns 16 hex digits for any string, the same for the same string', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(hash64(text)).toMatch(/^[0-9a-f]{16}$/)
        expect(hash64(text)).toBe(hash64(text.slice()))
      }),
    )
  })

  it('does not collide for many similar strings, in either half', () => {
    const hashes = Array.from({ length: 20_000 }, (_, index) => hash64(`queue-${index}`))
    expect(new Set(hashes).size).toBe(hashes.length)
    for (const half of [
      hashes.map((hash) => hash.slice(0, 8)),
      hashes.map((hash) => hash.slice(8)),
    ])
      expect(new Set(half).size).toBeGreaterThan(hashes.length - 5)
  })

  it('flips about half of the bits when one character changes', () => {
    const bits = (hash: string): string => BigInt(`0x${hash}`).toString(2).padStart(64, '0')
    let turned = 0
    for (let index = 0; index < 1000; index++) {
      const [one, other] = [bits(hash64(`a${index}`)), bits(hash64(`b${index}`))]
      turned += Array.from(one).filter((bit, place) => bit !== other[place]).length
    }
    expect(turned / 1000).toBeGreaterThan(30)
    expect(turned / 1000).toBeLessThan(34)
  })
})
