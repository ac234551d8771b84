import { describe, expect, it } from 'vitest'
import { remembered } from '../../src/letter/remembered.ts'

describe('remembered', () => {
  it('computes each key once, and clears the cache when it is full', () => {
    const worked: number[] = []
    const told = remembered(2, (key: number) => {
      worked.push(key)
      return `<${key}>`
    })
    expect([1, 2, 1, 2].map(told)).toEqual(['<1>', '<2>', '<1>', '<2>'])
    expect(worked).toEqual([1, 2])
    expect([3, 3, 1].map(told)).toEqual(['<3>', '<3>', '<1>'])
    expect(worked).toEqual([1, 2, 3, 1])
  })

  it('caches an empty string', () => {
    let times = 0
    const told = remembered(2, () => {
      times += 1
      return ''
    })
    expect([told('a'), told('a'), times]).toEqual(['', '', 1])
  })
})
