import { afterEach, describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import { openThread, type Thread } from '../../../src/backends/sqlite/thread.ts'
import { nodeAdvice } from '../../../src/backends/sqlite/node-version.ts'

interface Verbs {
  size: { ask: null; answer: number }
  write: { ask: null; answer: number }
  flushed: { ask: null; answer: string }
  left: { ask: null; answer: boolean }
}

const program = { file: new URL('./counting-worker.ts', import.meta.url), name: 'counting' }
const callerMs = 1

describe('openThread', () => {
  let thread: Thread<Verbs>
  afterEach(() => thread.end())

  /** A thread whose commits take so long, as it says. */
  const opened = (commitMs: number, runs = program): Thread<Verbs> =>
    openThread({
      program: runs,
      file: commitMs,
      now: () => 0,
      callerMs,
      hear: () => {},
      lost: (cause) => new RedriveError('STORE_UNAVAILABLE', 'lost', { cause }),
    })

  /** The sizes of the batches that so many calls of this weight went in, when all came at once. */
  const sizes = async (calls: number, weight?: number): Promise<number[]> => {
    const all = Array.from({ length: calls }, () => thread.call('size', null, weight))
    const found = await Promise.all(all)
    return found.filter((size, at) => at === 0 || size !== found[at - 1])
  }

  it('has callers come in two halves while a commit takes less time than they do', async () => {
    thread = opened(63)
    await sizes(1)
    await sizes(1)
    expect(await sizes(64)).toEqual([32])
  })

  it('has them come together when a commit takes longer', async () => {
    thread = opened(65)
    await sizes(1)
    await sizes(1)
    expect(await sizes(64)).toEqual([64])
  })

  it('goes by the quicker of the last two commits', async () => {
    thread = opened(65)
    await sizes(1)
    expect(await sizes(64)).toEqual([32])
  })

  it('counts a heavy call for as many as it weighs, and one that weighs nothing for none', async () => {
    thread = opened(0)
    const [heavy, ...light] = await Promise.all([
      thread.call('size', null, 30),
      ...Array.from({ length: 30 }, () => thread.call('size', null)),
    ])
    expect([heavy, ...new Set(light)]).toEqual([1, 30])
    expect(await sizes(64, 0)).toEqual([64])
  })

  it('flushes what is not on disk yet once nobody asks for anything', async () => {
    thread = opened(0)
    expect(await thread.call('flushed', null)).toBe('flushed')
  })

  it('flushes it before the file is closed', async () => {
    thread = opened(0)
    await thread.call('write', null)
    await thread.end()
    thread = opened(0)
    expect(await thread.call('left', null)).toBe(false)
  })

  it.each([
    ['old-node-worker.ts', `has no SQLite: ${nodeAdvice}`],
    ['no-worker.ts', 'a file of Redrive is missing'],
  ])('says what is needed when it cannot start: %s', async (file, why) => {
    thread = opened(0, { file: new URL(file, import.meta.url), name: file })
    const error: unknown = await thread.call('size', null).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'INVALID_CONFIG' })
    expect((error as Error).message).toContain(why)
  })
})
