import { describe, expect, it } from 'vitest'
import { allStored } from '../../src/taps/poll-loop.ts'

describe('allStored', () => {
  const stored = Promise.resolve()
  const failed = (text: string): Promise<void> => Promise.reject(new Error(text))
  const errors: string[] = []
  const onError = (error: unknown): number => errors.push((error as Error).message)

  it('reports each letter that failed, and returns false if another was stored', async () => {
    errors.length = 0
    expect(await allStored([failed('one'), stored, failed('two')], onError)).toBe(false)
    expect(errors).toEqual(['one', 'two'])
  })

  it('rejects with the first error if every letter failed, and reports the others', async () => {
    errors.length = 0
    await expect(allStored([failed('one'), failed('two')], onError)).rejects.toThrow('one')
    expect(errors).toEqual(['two'])
  })

  it('returns true if all are stored, or if there were none', async () => {
    expect(await allStored([stored, stored])).toBe(true)
    expect(await allStored([])).toBe(true)
  })
})
