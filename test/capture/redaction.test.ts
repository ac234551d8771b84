import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { passThrough } from '../../src/stores/pass-through.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { immediate } from '../../src/policy/backoff.ts'
import { refused } from '../a-queue.ts'
import { eachStoreAndOpenSearch } from '../each-store.ts'
import { aFolder } from '../folders.ts'

const secret = 'mia@example.com'
const folder = aFolder('spool')
const encryption = { keys: { k1: Buffer.alloc(32, 7).toString('base64') }, current: 'k1' }

function fail(dlq: DeadLetterQueue): ReturnType<DeadLetterQueue['enqueue']> {
  const cause = new Error(`cause ${secret}`)
  return dlq.enqueue({ type: 'mail', payload: { to: secret } }, new Error(secret, { cause }), {
    headers: { to: secret },
    metadata: { to: secret },
    dedupeKey: secret,
    task: { id: '1', description: secret, source: 'test' },
  })
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner instanceof Uint8Array ? Buffer.from(inner).toString() : inner,
  )
}

async function opened(store: Store, options: QueueOptions): Promise<DeadLetterQueue> {
  return DeadLetterQueue.open(store, { clock: fakeClock(), ...options })
}

describe.each(eachStoreAndOpenSearch)('redaction on %s', (_, open) => {
  it('stores no secret with redactStored, through edits and their undo', async () => {
    const clock = fakeClock()
    const { store, close } = await open(clock)
    try {
      const redact = { redactStored: true }
      const dlq = await DeadLetterQueue.open(store, { clock, redact })
      const { id, state, reason } = await fail(dlq)
      expect({ state, reason }).toEqual({ state: 'parked', reason: 'redacted' })
      const by = { reason: `for ${secret}`, by: 'otto' }
      await dlq.edit(id, { payload: { to: 'nobody' }, headers: { to: 'nobody' }, ...by })
      await dlq.edit(id, { headers: { to: secret }, tags: [secret], ...by })
      expect((await dlq.get(id))!.payload.redacted).toBe(true)
      expect(textOf(await store.stored([id]))).not.toContain(secret)
      expect(textOf(await store.records.list('edit'))).not.toContain(secret)
      await dlq.undoEdit(id, 'otto')
      expect((await dlq.retry(id, 'otto')).state).toBe('pending')
      await dlq.close()
    } finally {
      await close()
    }
  })
})

describe('a capture with atCapture', () => {
  it('stores no secret in plain with encryption, and handlers get the whole payload', async () => {
    const store = memoryStore()
    const dlq = await opened(store, { encryption, redact: { atCapture: true } })
    const { id } = await fail(dlq)
    await dlq.note(id, `about ${secret}`, 'otto')
    await dlq.fail(id, new Error(`again ${secret}`), 'otto')
    expect(textOf(await store.stored([id]))).not.toContain(secret)
    const [group] = (await dlq.groups()).items
    expect(group?.title).not.toContain(secret)
    const { items } = await dlq.audit({})
    expect(textOf(items)).not.toContain(secret)
    const letter = (await dlq.get(id))!
    expect(Buffer.from(letter.payload.bytes).toString()).toContain(secret)
    expect(letter.headers).toEqual({ to: secret })
    await dlq.close()
  })

  it('puts failures into one group that differ in a secret only', async () => {
    const dlq = await opened(memoryStore(), { redact: { atCapture: true } })
    const one = await dlq.enqueue({ type: 'mail', payload: 1 }, new Error('no a@example.com here'))
    const other = await dlq.enqueue({ type: 'mail', payload: 2 }, new Error('no b@test.org here'))
    expect(one.fingerprint).toBe(other.fingerprint)
    await dlq.close()
  })

  it('leaves the payload without encryption, unless redactStored is set', async () => {
    const store = memoryStore()
    const dlq = await opened(store, {
      redact: { atCapture: true },
      queues: { mail: { redact: { redactStored: true } } },
    })
    const plain = await dlq.enqueue({ type: 'other', payload: { to: secret } }, new Error('no'))
    expect(Buffer.from(plain.payload.bytes).toString()).toContain(secret)
    const { id, state, reason } = await fail(dlq)
    expect({ state, reason }).toEqual({ state: 'parked', reason: 'redacted' })
    expect(textOf(await store.stored([id]))).not.toContain(secret)
    await expect(dlq.retry(id, 'otto')).rejects.toMatchObject({ code: 'CONTENT_MISSING' })
    await expect(dlq.replay(id, 'otto')).rejects.toMatchObject({ code: 'CONTENT_MISSING' })
    await expect(dlq.plan('retry', { queue: 'mail' }, { by: 'otto' })).rejects.toThrow(
      'its payload or its headers were redacted before they were stored',
    )
    await dlq.close()
  })

  it('writes no secret to the spool', async () => {
    const down = new RedriveError('STORE_UNAVAILABLE', 'the store is down')
    const store = passThrough(memoryStore(), { add: () => Promise.reject(down) })
    const dlq = await DeadLetterQueue.open(store, {
      encryption,
      redact: { atCapture: true },
      spoolPath: folder,
      onStoreDown: 'spool',
    })
    await fail(dlq)
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) =>
      one.isFile(),
    )
    const written = files.map((one) => readFileSync(join(one.parentPath, one.name), 'latin1'))
    expect(written.join('').length).toBeGreaterThan(0)
    expect(written.filter((text) => text.includes(secret))).toEqual([])
    await dlq.close()
  })
})

describe('an edit with redactStored', () => {
  const by = { reason: 'test', by: 'otto' }
  const incomplete = { code: 'CONTENT_MISSING' }

  it('lets a letter run only after payload and headers have their values again', async () => {
    const dlq = await opened(memoryStore(), { redact: { redactStored: true } })
    const { id } = await fail(dlq)
    await dlq.edit(id, { payload: { to: 'nobody' }, ...by })
    await expect(dlq.retry(id, 'otto')).rejects.toMatchObject(incomplete)
    await dlq.edit(id, { headers: { to: 'nobody' }, ...by })
    const { state, payload, headers } = await dlq.retry(id, 'otto')
    expect({ state, headers }).toEqual({ state: 'pending', headers: { to: 'nobody' } })
    expect(payload.redacted).toBeUndefined()
    await dlq.close()
  })

  it('keeps a letter from running while its payload lacks a value', async () => {
    const dlq = await opened(memoryStore(), { redact: { redactStored: true } })
    const { id } = await fail(dlq)
    await dlq.edit(id, { headers: { to: 'nobody' }, ...by })
    await expect(dlq.retry(id, 'otto')).rejects.toMatchObject(incomplete)
    const patch = [{ op: 'replace' as const, path: '/to', value: 'nobody' }]
    await dlq.edit(id, { patch, ...by })
    expect((await dlq.retry(id, 'otto')).state).toBe('pending')
    await dlq.close()
  })

  it('marks a letter as redacted whose new headers have a secret, until the edit is undone', async () => {
    const store = memoryStore()
    const dlq = await opened(store, { redact: { redactStored: true } })
    const { id } = await dlq.enqueue({ type: 'mail', payload: { to: 'nobody' } }, new Error('no'))
    const edited = await dlq.edit(id, { headers: { to: secret }, ...by })
    expect(edited.payload.redacted).toBe(true)
    expect(edited.headers).toEqual({ to: '[redacted]' })
    expect(textOf(await store.stored([id]))).not.toContain(secret)
    await expect(dlq.retry(id, 'otto')).rejects.toMatchObject(incomplete)
    const undone = await dlq.undoEdit(id, 'otto')
    expect(undone.payload.redacted).toBeUndefined()
    expect((await dlq.retry(id, 'otto')).state).toBe('pending')
    await dlq.close()
  })

  it('leaves the mark of a redacted letter when only its tags change', async () => {
    const dlq = await opened(memoryStore(), { redact: { redactStored: true } })
    const { id } = await fail(dlq)
    const { payload, tags } = await dlq.edit(id, { tags: ['seen'], ...by })
    expect({ redacted: payload.redacted, tags }).toEqual({ redacted: true, tags: ['seen'] })
    await dlq.close()
  })
})

describe('an edit with redact', () => {
  it.each([
    ['payload', { to: '[redacted]' }],
    ['headers', { to: '[redacted]' }],
    ['metadata', { to: '[redacted]' }],
    ['tags', ['[redacted]']],
  ])('rejects %s with the mark of a hidden value', async (name, value) => {
    const dlq = await opened(memoryStore(), { redact: {} })
    const { id } = await fail(dlq)
    const edit = dlq.edit(id, { [name]: value, reason: 'test', by: 'otto' })
    await expect(edit).rejects.toThrow(`\`${name}\` contains [redacted]`)
    await dlq.close()
  })
})

describe('a partial failure with redactStored', () => {
  it('stores no secret of the remaining input, and parks the letter', async () => {
    const store = memoryStore()
    const clock = fakeClock()
    const redact = { redactStored: true }
    const dlq = await DeadLetterQueue.open(store, { clock, redact, backoff: immediate() })
    const { id } = await dlq.enqueue({ type: 'mail', payload: ['1', '2'] }, refused())
    const inputs: unknown[] = []
    dlq.handle('mail', ({ input }) => {
      inputs.push(input)
      return { ok: false, error: refused(), remaining: [secret] }
    })
    dlq.start()
    await clock.advance(5000)
    expect(inputs).toEqual([['1', '2']])
    expect(textOf(await store.stored([id]))).not.toContain(secret)
    expect(await dlq.get(id)).toMatchObject({
      state: 'parked',
      reason: 'redacted',
      payload: { redacted: true, restOf: 1 },
    })
    await dlq.close()
  })
})
