import { describe, expect, it } from 'vitest'
import { insideRedelivery, keepUnlessRetried, redelivering } from '../src/run-context.ts'
import { aLetter } from '../src/testing/a-letter.ts'
import { deferred } from './a-queue.ts'

const letter = aLetter({ id: 'a-letter', queue: 'outer' })

/** Says what was kept, in order. */
function aKeeper(): { kept: string[]; keep: (queue: string) => Promise<boolean> } {
  const kept: string[] = []
  return {
    kept,
    keep: (queue) => keepUnlessRetried(queue, async () => kept.push(queue)),
  }
}

describe('insideRedelivery', () => {
  it('returns the letter during the run, and not for work that outlives it', async () => {
    const later = deferred()
    let after: Promise<string | undefined> | undefined
    const during = await insideRedelivery(letter, async () => {
      after = later.promise.then(() => redelivering())
      return redelivering()
    })
    later.resolve()
    expect([during, await after, redelivering()]).toEqual(['a-letter', undefined, undefined])
  })

  it('ends when the run fails', async () => {
    const later = deferred()
    let after: Promise<string | undefined> | undefined
    const failing = insideRedelivery(letter, async () => {
      after = later.promise.then(() => redelivering())
      throw new Error('failed')
    })
    await expect(failing).rejects.toThrow('failed')
    later.resolve()
    expect(await after).toBeUndefined()
  })
})

describe('keepUnlessRetried', () => {
  it('captures at once outside of a run', async () => {
    const { kept, keep } = aKeeper()
    expect(await keep('inner')).toBe(true)
    expect(kept).toEqual(['inner'])
  })

  it('captures failures that a run caught, before the run resolves', async () => {
    const { kept, keep } = aKeeper()
    await insideRedelivery(letter, async () => {
      expect(await keep('inner')).toBe(false)
      expect(kept).toEqual([])
    })
    expect(kept).toEqual(['inner'])
  })

  it.each([
    ['throws', () => Promise.reject(new Error('failed'))],
    ['says that it failed', () => Promise.resolve({ ok: false, error: 'failed' })],
  ])('captures nothing when the run %s, because its letter runs again', async (_how, end) => {
    const { kept, keep } = aKeeper()
    await insideRedelivery(letter, async () => {
      await keep('inner')
      return end()
    }).catch(() => {})
    expect(kept).toEqual([])
  })

  it('does not capture a failure of the queue of the running letter', async () => {
    const { kept, keep } = aKeeper()
    await insideRedelivery(letter, () => keep('outer'))
    expect(kept).toEqual([])
  })

  it('lets a run succeed even if a capture fails', async () => {
    const keep = (): Promise<never> => Promise.reject(new Error('store away'))
    const run = insideRedelivery(letter, () => keepUnlessRetried('inner', keep))
    expect(await run).toBe(false)
  })
})
