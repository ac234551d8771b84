import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { passThrough } from '../../src/stores/pass-through.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { eachStoreAndOpenSearch } from '../each-store.ts'

const subject = 'mia@example.com'
const secret = 'mia-lives-in-Ulm'
const encryption = { keys: { k1: Buffer.alloc(32, 7).toString('base64') }, current: 'k1' }
const options = { subject: 'payload.user', encryption } satisfies QueueOptions
const by = { by: 'otto', reason: 'request 4711' }

function enqueue(dlq: DeadLetterQueue, user = subject): Promise<DeadLetter> {
  return dlq.enqueue({ type: 'mail', payload: { user, secret } }, new Error(`no: ${secret}`), {
    headers: { 'x-user': secret },
    metadata: { secret },
    tags: [secret],
    dedupeKey: `${secret}-${user}`,
    lane: secret,
  })
}

/** All that the store has about letters and edits, as text. Bytes are in base64 and in UTF-8. */
async function contentOf(store: Store, ids: string[]): Promise<string> {
  const kinds = await store.records.kinds()
  const records = await Promise.all(
    kinds.filter((kind) => kind !== 'audit').map((kind) => store.records.list(kind)),
  )
  return JSON.stringify([await store.stored(ids), records], (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString() : value,
  )
}

describe.each(eachStoreAndOpenSearch)('eraseSubject on %s', (_, open) => {
  it.each([
    ['with encryption', options],
    ['without encryption', { subject: options.subject }],
  ])('overwrites the letters %s, and no others', async (__, given) => {
    const clock = fakeClock()
    const { store, close } = await open(clock)
    try {
      const dlq = await DeadLetterQueue.open(store, { clock, ...given })
      const { id } = await enqueue(dlq)
      const other = await enqueue(dlq, 'bob')
      await dlq.edit(id, {
        payload: { user: subject, secret: `${secret}-2` },
        reason: 'x',
        by: 'a',
      })
      await dlq.note(id, `about ${secret}`, 'mia')
      const erasure = await dlq.eraseSubject(subject, by)
      expect(erasure).toMatchObject({ letters: 1, skipped: 0 })
      expect(await contentOf(store, [id])).not.toContain(secret)
      const letter = (await dlq.get(id))!
      expect(letter).toMatchObject({ state: 'parked', reason: 'erased', metadata: {} })
      expect(letter.payload.erased).toBeDefined()
      expect(letter.corrupt).toBeUndefined()
      for (const call of [
        () => dlq.retry(id, 'mia'),
        () => dlq.replay(id, 'mia'),
        () => dlq.edit(id, { payload: {}, reason: 'x', by: 'mia' }),
        () => dlq.undoEdit(id, 'mia'),
      ])
        await expect(call()).rejects.toMatchObject({
          code: expect.stringMatching(/CONTENT_MISSING|INVALID_INPUT/) as string,
        })
      const untouched = (await dlq.get(other.id))!
      expect(Buffer.from(untouched.payload.bytes).toString()).toContain(secret)
      expect(await dlq.stats()).toMatchObject({ size: 2, states: { parked: 1, pending: 1 } })
      await dlq.remove(id, 'mia')
      expect(await dlq.get(id)).toBeUndefined()
      await dlq.close()
    } finally {
      await close()
    }
  })

  it('makes copies of the rows unreadable, and gives later letters a new key', async () => {
    const clock = fakeClock()
    const { store, close } = await open(clock)
    try {
      const dlq = await DeadLetterQueue.open(store, { clock, ...options })
      const { id } = await enqueue(dlq)
      const [backup] = await store.stored([id])
      await dlq.eraseSubject(subject, by)
      const later = await enqueue(dlq)
      // The copy is restored, with all that it had.
      const letter = { ...backup!.letter, version: 99 }
      expect(await store.keep([{ ...backup!, letter }])).toEqual(['written'])
      const restored = (await dlq.get(id))!
      expect(restored.corrupt).toContain('the key of its data subject was destroyed')
      expect(Buffer.from(restored.payload.bytes).toString()).not.toContain(secret)
      const fresh = (await dlq.get(later.id))!
      expect(Buffer.from(fresh.payload.bytes).toString()).toContain(secret)
      expect(fresh.headers).toEqual({ 'x-user': secret })
      await dlq.close()
    } finally {
      await close()
    }
  })
})

describe('eraseSubject', () => {
  async function aQueue(store: Store = memoryStore()): Promise<DeadLetterQueue> {
    return DeadLetterQueue.open(store, { clock: fakeClock(), ...options })
  }

  it('says that a subject is unknown', async () => {
    const dlq = await aQueue()
    await enqueue(dlq)
    await expect(dlq.eraseSubject('nobody', by)).rejects.toMatchObject({
      code: 'SUBJECT_NOT_FOUND',
    })
    await dlq.close()
  })

  it('continues after it was interrupted', async () => {
    let failing = false
    const store = memoryStore()
    const flaky = passThrough(store, {
      keep: async (letters: Parameters<Store['keep']>[0]) => {
        const result = await store.keep(letters)
        if (failing) throw new Error('the process ended')
        return result
      },
    })
    const dlq = await aQueue(flaky)
    const ids = [(await enqueue(dlq)).id]
    for (const number of [1, 2])
      ids.push(
        (await dlq.enqueue({ type: 'mail', payload: { user: subject, number } }, new Error(secret)))
          .id,
      )
    failing = true
    await expect(dlq.eraseSubject(subject, by)).rejects.toThrow('the process ended')
    failing = false
    for (const id of ids.slice(1))
      expect((await dlq.get(id))!.corrupt).toContain('key of its data subject was destroyed')
    expect(await dlq.eraseSubject(subject, by)).toMatchObject({ letters: 2 })
    expect(await contentOf(store, ids)).not.toContain(secret)
    await dlq.close()
  })

  it('keeps the name of the subject out of the store and of the audit log', async () => {
    const store = memoryStore()
    const dlq = await aQueue(store)
    const { id } = await dlq.enqueue({ type: 'mail', payload: { n: 1 } }, new Error('no'), {
      subject,
    })
    await dlq.eraseSubject(subject, by)
    const { items } = await dlq.audit({ action: 'erase' })
    expect(items[0]).toMatchObject({ outcome: 'done', after: { letters: 1, skipped: 0 } })
    expect(JSON.stringify(items) + (await contentOf(store, [id]))).not.toContain(subject)
    await dlq.close()
  })

  it('survives a rotation of the keys of the provider', async () => {
    const store = memoryStore()
    const dlq = await aQueue(store)
    const { id } = await enqueue(dlq)
    const keys = { ...encryption.keys, k2: Buffer.alloc(32, 9).toString('base64') }
    const rotated = await DeadLetterQueue.open(store, {
      clock: fakeClock(),
      ...options,
      encryption: { keys, current: 'k2' },
    })
    await rotated.rotateKeys()
    expect((await rotated.keyUse()).letters).toEqual({ k2: 1 })
    expect(Buffer.from((await rotated.get(id))!.payload.bytes).toString()).toContain(secret)
    expect(await rotated.eraseSubject(subject, by)).toMatchObject({ letters: 1 })
    await dlq.close()
  })
})
