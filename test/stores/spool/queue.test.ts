import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { connect, inspectSpool, spoolPathOf } from '../../../src/connect/store.ts'
import { RedriveError } from '../../../src/errors.ts'
import type { RedriveEvent } from '../../../src/observer.ts'
import type { QueueOptions } from '../../../src/options/options.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import type { Store } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { passThrough } from '../../../src/stores/pass-through.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { aFolder } from './spool-bench.ts'

/** A queue on a store that is unreachable while `outage.active`. */
async function aQueue(options: QueueOptions) {
  const clock = fakeClock()
  const inner = memoryStore({ clock })
  const outage = { active: true }
  const add: Store['add'] = async (letters, capacity) => {
    if (outage.active) throw new RedriveError('STORE_UNAVAILABLE', 'connection refused')
    return inner.add(letters, capacity)
  }
  const events: RedriveEvent[] = []
  const dlq = await DeadLetterQueue.open(passThrough(inner, { add }), {
    clock,
    observers: [(event) => events.push(event)],
    ...options,
  })
  const until = async (type: RedriveEvent['type']): Promise<void> => {
    while (!events.some((event) => event.type === type)) await clock.advance(1000)
  }
  return { dlq, outage, clock, events, until }
}

describe('a queue whose store is unreachable', () => {
  it('stores letters in the spool, reports it, and redelivers them once the store is reachable', async () => {
    await using folder = await aFolder()
    const { dlq, outage, events, until } = await aQueue({ spoolPath: folder.path })
    const seen: unknown[] = []
    dlq.handle('mail', ({ input }) => void seen.push(input))
    dlq.start()
    const letter = await dlq.enqueue({ type: 'mail', payload: { n: 1 } }, new Error('ECONNRESET'))
    expect(events.map(({ type }) => type)).toContain('spooling')
    expect(await dlq.health()).toMatchObject({ ok: false, spool: { letters: 1, drained: 0 } })
    const summary = await dlq.getSummary()
    expect(summary).toContain('- Waiting: 1 (')
    expect(summary).toContain(`- Oldest: ${letter.deadLetteredAt}`)
    outage.active = false
    await until('resolved')
    expect(seen).toEqual([{ n: 1 }])
    await until('drained')
    expect(await dlq.metrics()).toMatchObject({ spool: { letters: 0, drained: 1 } })
    expect(events).toContainEqual({ type: 'drained', count: 1, duplicates: 0 })
    expect(await dlq.health()).toMatchObject({ ok: true })
    await dlq.close()
  })

  it('rethrows the error of a guarded call, and spools its letter', async () => {
    await using folder = await aFolder()
    const { dlq } = await aQueue({ spoolPath: folder.path })
    const failure = new Error('declined')
    const charge = dlq.guard('charge', () => Promise.reject(failure))
    await expect(charge(1)).rejects.toBe(failure)
    expect(await dlq.health()).toMatchObject({ spool: { letters: 1 } })
    await dlq.close()
  })

  it('rejects letters with onStoreDown: fail, or without a spool folder', async () => {
    await using folder = await aFolder()
    for (const options of [{}, { spoolPath: folder.path, onStoreDown: 'fail' }] as const) {
      const { dlq } = await aQueue(options)
      await expect(dlq.enqueue({ type: 'a' }, new Error('b'))).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
      })
      expect(await dlq.health()).not.toHaveProperty('spool')
      await dlq.close()
    }
    expect(readdirSync(folder.path)).toEqual([])
  })

  it('holds letters in memory with onStoreDown: memory, and reports it in health', async () => {
    const { dlq, outage, until } = await aQueue({ onStoreDown: 'memory' })
    await dlq.enqueue({ type: 'a' }, new Error('b'))
    const { ok, problems } = await dlq.health()
    expect(ok).toBe(false)
    expect(problems).toEqual([expect.stringContaining('in memory only')])
    outage.active = false
    await until('drained')
    await dlq.close()
  })
})

describe('the spool folder', () => {
  it('is next to the file of a SQLite store opened by URL, and is removed on close', async () => {
    await using folder = await aFolder()
    const file = join(folder.path, 'letters.db')
    const dlq = await DeadLetterQueue.open(`sqlite:${file}`)
    expect(await dlq.health()).toMatchObject({ ok: true, spool: { letters: 0 } })
    expect(existsSync(`${file}-spool`)).toBe(true)
    await dlq.close()
    expect(existsSync(`${file}-spool`)).toBe(false)
  })

  it('is required for any other store', async () => {
    const refusal = { code: 'INVALID_CONFIG' }
    const store = await connect('memory:', systemClock)
    for (const given of ['memory:', store])
      await expect(DeadLetterQueue.open(given, { onStoreDown: 'spool' })).rejects.toMatchObject(
        refusal,
      )
  })

  it('must be writable', async () => {
    await using folder = await aFolder()
    const url = `sqlite:${join(folder.path, 'letters.db')}`
    const opening = DeadLetterQueue.open(url, { spoolPath: '/dev/null/spool' })
    await expect(opening).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringContaining('spoolPath') as string,
    })
  })

  it('does not depend on the password, and does not contain it', () => {
    const path = spoolPathOf('postgres://ada:secret@db/letters')
    expect(path).toBe(spoolPathOf('postgres://bob:other@db/letters'))
    expect(path).not.toBe(spoolPathOf('postgres://ada:secret@db/others'))
    expect(path).toMatch(/^\.redrive\/spool-[0-9a-f]{12}$/)
    expect(spoolPathOf('sqlite:///var/a.db')).toBe('/var/a.db-spool')
  })

  it('can be inspected by another process', async () => {
    await using folder = await aFolder()
    const file = join(folder.path, 'letters.db')
    const { dlq } = await aQueue({ spoolPath: `${file}-spool` })
    expect(await inspectSpool(`sqlite:${file}`)).toMatchObject({ files: [], bytes: 0 })
    await dlq.enqueue({ type: 'a' }, new Error('b'))
    await dlq.close()
    const spool = await inspectSpool(`sqlite:${file}`)
    expect(spool).toMatchObject({ path: `${file}-spool`, damaged: 0, refused: 0 })
    expect(spool.files).toHaveLength(1)
    expect(spool.bytes).toBeGreaterThan(500)
  })
})
