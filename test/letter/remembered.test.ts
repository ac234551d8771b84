import { describe, expect, it } from 'vitest'
import { remembered } from '../../src/letter/remembered.ts'

describe('remembered', () => {
  it('computes each key once, and clears the cache when it is full', () => {
    const computed: number[] = []
    const cached = remembered(2, (key: number) => {
      computed.push(key)
      return `<${key}>`
    })
    expect([1, 2, 1, 2].map(cached)).toEqual(['<1>', '<2>', '<1>', '<2>'])
    expect(computed).toEqual([1, 2])
    expect([3, 3, 1].map(cached)).toEqual(['<3>', '<3>', '<1>'])
    expect(computed).toEqual([1, 2, 3, 1])
  })

  it('caches an empty string', () => {
    let times = 0
    const cached = remembered(2, () => {
      times += 1
      return ''
    })
    expect([cached('a'), cached('a'), times]).toEqual(['', '', 1])
  })
})
