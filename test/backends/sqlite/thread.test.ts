import { afterEach, describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import { SqliteThread } from '../../../src/backends/sqlite/thread.ts'
import { nodeAdvice } from '../../../src/backends/sqlite/node-version.ts'

interface Methods {
  size: { request: null; response: number }
  write: { request: null; response: number }
  flushed: { request: null; response: string }
  left: { request: null; response: boolean }
}

const program = { file: new URL('./counting-worker.ts', import.meta.url), name: 'counting' }

describe('SqliteThread', () => {
  let thread: SqliteThread<Methods>
  afterEach(() => thread.close())

  const open = (runs = program): SqliteThread<Methods> =>
    new SqliteThread({
      program: runs,
      file: null,
      now: () => 0,
      onEvent: () => {},
      toLossError: (cause) => new RedriveError('STORE_UNAVAILABLE', 'lost', { cause }),
    })

  it('sends calls of the same tick as one batch', async () => {
    thread = open()
    const sizes = await Promise.all(Array.from({ length: 32 }, () => thread.call('size', null)))
    expect(new Set(sizes)).toEqual(new Set([32]))
  })

  it('sends many calls of the same tick to an idle thread as two batches', async () => {
    thread = open()
    const sizes = await Promise.all(Array.from({ length: 80 }, () => thread.call('size', null)))
    expect(new Set(sizes)).toEqual(new Set([40]))
  })

  it('bounds a batch by the cost of its calls', async () => {
    thread = open()
    const sizes = await Promise.all([
      thread.call('size', null, 256),
      thread.call('size', null, 0),
      thread.call('size', null, 256),
      thread.call('size', null, 1),
    ])
    expect(sizes).toEqual([3, 3, 3, 1])
  })

  it('flushes once the thread is idle', async () => {
    thread = open()
    expect(await thread.call('flushed', null)).toBe('flushed')
  })

  it('flushes before the file is closed', async () => {
    thread = open()
    await thread.call('write', null)
    await thread.close()
    thread = open()
    expect(await thread.call('left', null)).toBe(false)
  })

  it.each([
    ['old-node-worker.ts', `has no SQLite: ${nodeAdvice}`],
    ['no-worker.ts', 'a file of Redrive is missing'],
  ])('explains why it cannot start: %s', async (file, why) => {
    thread = open({ file: new URL(file, import.meta.url), name: file })
    const error: unknown = await thread.call('size', null).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'INVALID_CONFIG' })
    expect((error as Error).message).toContain(why)
  })
})
