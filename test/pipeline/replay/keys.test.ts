import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Keys } from '../../../src/pipeline/replay/keys.ts'

describe('Keys', () => {
  it('returns the first offset of each key', () => {
    const keys = fc.uint8Array({ maxLength: 3, max: 3 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(fc.array(keys, { maxLength: 200 }), (all) => {
        const seen = new Keys()
        const known = new Map<string, number>()
        for (const [offset, key] of all.entries()) {
          const name = key.toString('hex')
          expect(seen.add(key, offset)).toBe(known.get(name))
          if (!known.has(name)) known.set(name, offset)
        }
      }),
    )
  })

  it('grows with its keys', () => {
    const seen = new Keys()
    const keyOf = (n: number): Buffer => Buffer.from('k'.repeat(n % 90) + n)
    const first = 5_000_000_000
    for (let n = 0; n < 20_000; n++) seen.add(keyOf(n), first + n)
    const wrong = Array.from({ length: 20_000 }, (_, n) => n).filter(
      (n) => seen.add(keyOf(n), 0) !== first + n,
    )
    expect(wrong).toEqual([])
    expect(seen.add(Buffer.from('another'), 1)).toBe(undefined)
  })

  it('copies the key, not the buffer that contains it', () => {
    const seen = new Keys()
    const bytes = Buffer.from('a')
    seen.add(bytes, 1)
    bytes.write('b')
    expect([seen.add(Buffer.from('a'), 2), seen.add(bytes, 3)]).toEqual([1, undefined])
  })
})
