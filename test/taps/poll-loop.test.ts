import { describe, expect, it } from 'vitest'
import { allCarried } from '../../src/taps/reading.ts'

describe('allCarried', () => {
  const kept = Promise.resolve()
  const failed = (text: string): Promise<void> => Promise.reject(new Error(text))
  const troubles: string[] = []
  const onError = (error: unknown): number => troubles.push((error as Error).message)

  it('tells each letter that could not be kept, and goes on if another was', async () => {
    troubles.length = 0
    expect(await allCarried([failed('one'), kept, failed('two')], onError)).toBe(false)
    expect(troubles).toEqual(['one', 'two'])
  })

  it('rejects when none could be kept, and tells the others', async () => {
    troubles.length = 0
    await expect(allCarried([failed('one'), failed('two')], onError)).rejects.toThrow('one')
    expect(troubles).toEqual(['two'])
  })

  it('says that all were kept, also when there was none', async () => {
    expect(await allCarried([kept, kept])).toBe(true)
    expect(await allCarried([])).toBe(true)
  })
})
