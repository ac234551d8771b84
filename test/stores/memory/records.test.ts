import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../../src/stores/memory/memory.ts'

describe('records of memoryStore', () => {
  it('list no kind for a put that conflicted', async () => {
    const { records } = memoryStore()
    expect(await records.put('nothing', 'a', 1, 5)).toBe('conflict')
    expect(await records.kinds()).toEqual([])
  })
})
