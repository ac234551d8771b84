import { describe, expect, it } from 'vitest'
import { insideRedelivery, keepUnlessRetried, redelivering } from '../src/run-context.ts'
import { aLetter } from '../src/testing/a-letter.ts'
import { deferred } from './a-queue.ts'

const letter = aLetter({ id: 'a-letter', queue: 'outer' })

/** Records the captured queues, in order. */
function aRecorder(): { captured: string[]; keep: (queue: string) => Promise<boolean> } {
  const captured: string[] = []
  return {
    captured,
    keep: (queue) => keepUnlessRetried(queue, async () => captured.push(queue)),
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
    const { captured, keep } = aRecorder()
    expect(await keep('inner')).toBe(true)
    expect(captured).toEqual(['inner'])
  })

  it('captures failures that a run caught, before the run resolves', async () => {
    const { captured, keep } = aRecorder()
    await insideRedelivery(letter, async () => {
      expect(await keep('inner')).toBe(false)
      expect(captured).toEqual([])
    })
    expect(captured).toEqual(['inner'])
  })

  it.each([
    ['throws', () => Promise.reject(new Error('failed'))],
    ['says that it failed', () => Promise.resolve({ ok: false, error: 'failed' })],
  ])('captures nothing when the run %s, because its letter runs again', async (_how, end) => {
    const { captured, keep } = aRecorder()
    await insideRedelivery(letter, async () => {
      await keep('inner')
      return end()
    }).catch(() => {})
    expect(captured).toEqual([])
  })

  it('does not capture a failure of the queue of the running letter', async () => {
    const { captured, keep } = aRecorder()
    await insideRedelivery(letter, () => keep('outer'))
    expect(captured).toEqual([])
  })

  it('lets a run succeed even if a capture fails', async () => {
    const keep = (): Promise<never> => Promise.reject(new Error('store away'))
    const run = insideRedelivery(letter, () => keepUnlessRetried('inner', keep))
    expect(await run).toBe(false)
  })
})
