import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../../src/stores/memory/memory.ts'

describe('the records of memoryStore', () => {
  it('have no kind of which nothing was ever written', async () => {
    const { records } = memoryStore()
    expect(await records.put('nothing', 'a', 1, 5)).toBe('conflict')
    expect(await records.kinds()).toEqual([])
  })
})
