import { describe, expect, it } from 'vitest'
import { memoize } from '../../src/letter/memoize.ts'

describe('memoize', () => {
  it('computes each key once, and clears the cache when it is full', () => {
    const computed: number[] = []
    const memoized = memoize(2, (key: number) => {
      computed.push(key)
      return `<${key}>`
    })
    expect([1, 2, 1, 2].map(memoized)).toEqual(['<1>', '<2>', '<1>', '<2>'])
    expect(computed).toEqual([1, 2])
    expect([3, 3, 1].map(memoized)).toEqual(['<3>', '<3>', '<1>'])
    expect(computed).toEqual([1, 2, 3, 1])
  })

  it('caches an empty string', () => {
    let times = 0
    const memoized = memoize(2, () => {
      times += 1
      return ''
    })
    expect([memoized('a'), memoized('a'), times]).toEqual(['', '', 1])
  })
})
