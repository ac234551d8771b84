import { describe, expect, it } from 'vitest'
import { remembered } from '../../src/letter/remembered.ts'

describe('remembered', () => {
  it('works once for each key, and starts over when it has too many', () => {
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

  it('knows that something came to an empty text', () => {
    let times = 0
    const told = remembered(2, () => {
      times += 1
      return ''
    })
    expect([told('a'), told('a'), times]).toEqual(['', '', 1])
  })
})
