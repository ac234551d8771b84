import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitIntoBatches } from '../../../src/transfer/copy/batches.ts'

describe('splitIntoBatches', () => {
  it('keeps all ids in order, and each batch within its bytes', () => {
    const letters = fc.array(fc.record({ id: fc.uuid(), size: fc.nat(30) }))
    fc.assert(
      fc.property(letters, fc.integer({ min: 1, max: 50 }), (all, maxBytes) => {
        const batches = splitIntoBatches(all, maxBytes)
        expect(batches.flat()).toEqual(all.map(({ id }) => id))
        let at = 0
        for (const batch of batches) {
          const sizes = all.slice(at, (at += batch.length)).map(({ size }) => size)
          const bytes = sizes.reduce((sum, size) => sum + size, 0)
          expect(bytes <= maxBytes || batch.length === 1).toBe(true)
        }
      }),
    )
  })

  it('creates as few batches as possible', () => {
    const sizes = [4, 4, 4, 90, 0, 1, 9]
    const letters = sizes.map((size, n) => ({ id: `${n}`, size }))
    expect(splitIntoBatches(letters, 10)).toEqual([['0', '1'], ['2'], ['3'], ['4', '5', '6']])
    expect(splitIntoBatches([], 10)).toEqual([])
  })
})
