import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { decodePayload, encodePayload, viewPayload } from '../../src/index.ts'
import type { DeadLetter, Json } from '../../src/letter/letter.ts'
import { letterFromJson, letterToJson } from '../../src/letter/schema.ts'
import { immediate } from '../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { refused, timedOut } from '../a-queue.ts'
import { hostileBytes, hostileErrors, hostileValues } from '../letter/hostile.ts'
import { aFolder } from '../folders.ts'

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Replaces the bytes by their hash: comparing ten million bytes one by one takes seconds. */
const hashPayload = ({ payload, ...rest }: DeadLetter): unknown => ({
  ...rest,
  payload: { ...payload, bytes: sha(payload.bytes) },
})

/** Values whose encoding is truncated at its limit; the tests of the codec cover them. */
const hugeValues = new Set(['a proxy without a bottom', 'four billion holes'])
const values = hostileValues.filter(({ name }) => !hugeValues.has(name))

/** Names that look like paths, patterns or code, or are otherwise unusual. */
const hostileNames = [
  '../../etc/passwd',
  'a/b',
  '%2e%2e',
  'CON',
  'x'.repeat(200),
  '🙈',
  "'; DROP TABLE letters; --",
  '{hash}tag',
  '*',
  '?',
  ':',
  ' ',
  '__proto__',
  'constructor',
  'a\u202eb',
  '%',
  '_',
]

const task = { id: 'J1', description: 'd', source: 's' }
const github = { owner: 'o', repo: 'r', entityNumber: 5, entityType: 'pr' }

function nested(depth: number): { [key: string]: Json } {
  let value: { [key: string]: Json } = {}
  for (let level = 0; level < depth; level++) value = { a: value }
  return value
}

const toJson = (value: Json): string => JSON.stringify(value)

describe.each(['memory', 'sqlite'])('capture on %s', (kind) => {
  const folder = aFolder('redrive-bad')
  let dlq: DeadLetterQueue
  beforeAll(async () => {
    const url = kind === 'memory' ? 'memory:' : `sqlite:${join(folder, 'letters.db')}`
    dlq = await DeadLetterQueue.open(url, { maxPayloadBytes: 64 * 1024 ** 2 })
  })
  afterAll(() => dlq.close())

  /** Reads the letter by get, find, export and import: it must be the same each time. */
  async function expectUnchanged(kept: DeadLetter): Promise<DeadLetter> {
    const stored = (await dlq.get(kept.id))!
    expect(hashPayload(stored)).toEqual(hashPayload(kept))
    const { items } = await dlq.find({ queue: kept.queue, state: kept.state, limit: 1 })
    expect(items[0]!.id).toBe(kept.id)
    expect(viewPayload(stored.payload, 2000)).toBeTypeOf('string')
    const exported = JSON.parse(JSON.stringify(letterToJson(stored))) as Json
    const read = letterFromJson(exported)
    expect(read.ok || read.problem).toBe(true)
    expect(read.ok && sha(read.letter.payload.bytes)).toBe(sha(kept.payload.bytes))
    return stored
  }

  it.each(hostileErrors.map(({ name, make }) => [name, make] as const))(
    'stores the failure of %s',
    async (_name, make) => {
      const letter = await expectUnchanged(await dlq.enqueue({ type: 'errors' }, make()))
      expect(letter.failure.message.isWellFormed()).toBe(true)
      expect(JSON.stringify(letter.failure).length).toBeLessThan(256 * 1024)
    },
  )

  it.each(values.map(({ name, make, lossy }) => [name, make, lossy] as const))(
    'stores the value %s',
    async (_name, make, lossy) => {
      const letter = await expectUnchanged(
        await dlq.enqueue({ type: 'values', payload: make() }, refused()),
      )
      expect(letter.payload.lossy ?? false).toBe(lossy)
      expect(({} as Record<string, unknown>)['admin']).toBeUndefined()
    },
  )

  it.each(hostileBytes.map(({ name, make, contentType }) => [name, make, contentType] as const))(
    'stores the bytes of %s',
    async (_name, make, contentType) => {
      const bytes = make()
      const letter = await expectUnchanged(
        await dlq.enqueue({ type: 'bytes', payload: bytes }, refused(), { contentType }),
      )
      expect(sha(letter.payload.bytes)).toBe(sha(bytes))
      expect(letter.payload).toMatchObject({ contentType, size: bytes.length })
    },
  )

  it.each(hostileNames)('separates queue %j from other queues', async (type) => {
    await expectUnchanged(await dlq.enqueue({ type, payload: type }, refused()))
    const { items } = await dlq.find({ queue: type, limit: 100 })
    expect(items.every((letter) => letter.queue === type)).toBe(true)
    expect((await dlq.stats()).queues[type]).toBe(items.length)
  })

  it('stores hostile headers, metadata and tags as data, without prototype pollution', async () => {
    const headers = {
      'x-dlq-attempts': '999',
      line: 'a\r\nSet-Cookie: b',
      big: 'h'.repeat(1024 ** 2),
      ...Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`h${n}`, 'v'])),
    }
    const metadata = JSON.parse(
      '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}',
    ) as { [key: string]: Json }
    const letter = await expectUnchanged(
      await dlq.enqueue({ type: 'around' }, refused(), {
        headers,
        metadata,
        tags: ['__proto__', "'", ''],
      }),
    )
    expect(letter.headers).toEqual(headers)
    expect(Object.keys(letter.metadata)).toEqual(['__proto__', 'constructor'])
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined()
  })

  it('stores the context of a failure although JSON cannot represent it', async () => {
    const circular: { [key: string]: unknown } = { big: 10n }
    circular['self'] = circular
    const letter = await dlq.enqueue({ type: 'around', context: circular as never }, refused(), {
      metadata: circular as never,
    })
    await expectUnchanged(letter)
  })

  it.each([
    ['a policy without optional fields', { policy: { kind: 'linear' } }, {}],
    ['metadata 600 deep', { metadata: nested(600) }, { metadata: { value: toJson(nested(600)) } }],
    ['metadata 20,000 deep', { metadata: nested(20_000) }, {}],
    ['null for optional fields', { headers: null, task: null, dependsOn: null, by: null }, {}],
  ])('stores a letter that can be read again: %s', async (_name, context, kept) => {
    const operation = {
      type: 'read again',
      context: nested(600),
      endpoint: new URL('https://a.b/c'),
    }
    const letter = await expectUnchanged(
      await dlq.enqueue(operation as never, refused(), context as never),
    )
    expect(letter).toMatchObject(kept)
    expect(letter.source).toMatchObject({ endpoint: 'https://a.b/c' })
  })

  const ownId = '01995c3a-0000-7000-8000-00000000000a'

  it.each([
    ['a context that is not an object', null],
    ['a header that is not a string', { headers: { n: 1 } }],
    ['headers in a Map', { headers: new Map([['a', 'b']]) }],
    ['headers as a string', { headers: 'a: b' }],
    ['a tag that is not a string', { tags: [Symbol('t')] }],
    ['tags as a string', { tags: 'abc' }],
    ['an invalid policy', { policy: { kind: 'fixed', delayMs: Number.NaN } }],
    ['a policy with an unknown key', { policy: { ...immediate(), extra: 1 } }],
    ['a task with an unknown key', { task: { ...task, assignee: 'mia' } }],
    ['a github with an unknown key', { github: { ...github, sha: 'abc' } }],
    ['an unknown key', { prioirty: 'high' }],
    ['an unknown priority', { priority: 'urgent' }],
    ['a task without a source', { task: { id: 'J1', description: 'd' } }],
    ['a task as a string', { task: 'J1' }],
    ['a github without a repo', { github: { owner: 'o' } }],
    ['an invalid issue number', { github: { ...github, entityNumber: Number.NaN } }],
    ['an unknown entity type', { github: { ...github, entityType: 'commit' } }],
    ['an actor that is not a string', { by: 5 }],
    ['a trace that is not a string', { traceparent: 5 }],
    ['a content type that is not a string', { contentType: 5 }],
    ['an id that is not a string', { id: 5 }],
    ['dependencies that are not an array', { dependsOn: 5 }],
    ['a dependency on itself', { id: ownId, dependsOn: [ownId.toUpperCase()] }],
    ['a retry limit that is not a safe integer', { maxRetries: 1e300 }],
  ])('refuses %s with INVALID_INPUT', async (_name, context) => {
    await expect(
      dlq.enqueue({ type: 'refused' }, refused(), context as never),
    ).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  const halved = 'half \ud83d'

  it.each([
    ['dedupeKey', { dedupeKey: halved }],
    ['lane', { lane: halved }],
    ['tenant', { tenant: halved }],
    ['tags', { tags: ['whole', halved] }],
  ])('refuses a lone surrogate in %s', async (name, context) => {
    await expect(dlq.enqueue({ type: 'halves' }, refused(), context)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringMatching(new RegExp(`^${name}.* lone surrogate`)),
    })
    expect((await dlq.stats()).queues['halves']).toBeUndefined()
  })

  it('refuses a lone surrogate in a queue name in every call, and finds nothing by it', async () => {
    const refusal = { code: 'INVALID_INPUT', message: expect.stringMatching(/^a queue name/) }
    await expect(dlq.enqueue({ type: halved }, refused())).rejects.toMatchObject(refusal)
    const nothing = async (): Promise<void> => {}
    expect(() => dlq.handle(halved, nothing)).toThrow(expect.objectContaining(refusal))
    expect(() => dlq.guard(halved, nothing)).toThrow(expect.objectContaining(refusal))
    for (const filter of [{ queue: halved }, { lane: halved }, { tenant: halved }, { tag: halved }])
      expect((await dlq.find(filter)).items).toEqual([])
  })

  it('stores ids in lower case, also those of dependencies', async () => {
    const id = '0198C0DE-0000-7000-8000-00000000ABCD'
    const first = await dlq.enqueue({ type: 'ids' }, refused(), { id })
    const second = await dlq.enqueue({ type: 'ids' }, refused(), { dependsOn: [id] })
    expect(second.dependsOn).toEqual([first.id])
  })

  it('refuses a method that is not a string with INVALID_INPUT', async () => {
    await expect(
      dlq.enqueue({ type: 'refused', method: 5 as never }, refused()),
    ).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('accepts any string as a dedupe key, very long or with NUL, and compares keys exactly', async () => {
    const keys = ['k'.repeat(10_000), 'a\u0000b', 'a', 'a ', '\u00e9', 'e\u0301']
    for (const dedupeKey of keys) await dlq.enqueue({ type: 'keys' }, refused(), { dedupeKey })
    for (const dedupeKey of keys)
      expect(await dlq.enqueue({ type: 'keys' }, refused(), { dedupeKey })).toMatchObject({
        dedupeKey,
        occurrences: 2,
      })
    expect((await dlq.stats()).queues['keys']).toBe(keys.length)
  })

  it('stores 10 MB exactly, refuses one byte over the limit, and stores nothing of it', async () => {
    const bytes = Buffer.alloc(10 * 1024 ** 2, 'ab')
    await expectUnchanged(await dlq.enqueue({ type: 'large', payload: bytes }, refused()))
    const over = Buffer.alloc(64 * 1024 ** 2 + 1)
    await expect(dlq.enqueue({ type: 'over', payload: over }, refused())).rejects.toMatchObject({
      code: 'TOO_LARGE',
    })
    expect((await dlq.stats()).queues['over']).toBeUndefined()
  })

  it('gives each run its own copy of the input', async () => {
    const seen: unknown[] = []
    dlq.handle('mutates', ({ input, attempt }) => {
      seen.push(structuredClone(input))
      ;(input as { list: number[] }).list.push(attempt)
      if (attempt < 3) throw timedOut()
    })
    const done = new Promise((tell) =>
      dlq.on('resolved', ({ letter }) => letter.queue === 'mutates' && tell(letter)),
    )
    dlq.start()
    const { id, payload } = await dlq.enqueue(
      { type: 'mutates', payload: { list: [0] } },
      refused(),
      { policy: immediate() },
    )
    await done
    expect(seen).toEqual([{ list: [0] }, { list: [0] }, { list: [0] }])
    expect(sha((await dlq.get(id))!.payload.bytes)).toBe(sha(payload.bytes))
    await dlq.stop()
  })

  it('returns every stored value, page by page', async () => {
    const kept: unknown[] = []
    let cursor: string | undefined
    do {
      const from = cursor === undefined ? {} : { cursor }
      const page = await dlq.find({ queue: 'values', limit: 1000, payload: true, ...from })
      for (const letter of page.items) kept.push(decodePayload(letter.payload))
      cursor = page.cursor
    } while (cursor !== undefined)
    expect(kept).toHaveLength(values.length)
  })
})

describe('custom rules and observers', () => {
  it('that throw do not break a capture: the built-in classification applies, and the error is reported', async () => {
    const troubles: unknown[] = []
    await using dlq = await DeadLetterQueue.open('memory:', {
      rules: [
        {
          name: 'broken',
          when: () => {
            throw new Error('rule broke')
          },
          category: 'permanent',
        },
      ],
      backoffs: { broken: () => Number.NaN },
      observers: [(event) => void (event.type === 'error' && troubles.push(event.error))],
    })
    const letter = await dlq.enqueue({ type: 'a' }, refused(), {
      policy: { kind: 'custom', name: 'broken' },
    })
    expect(letter).toMatchObject({ category: 'network', state: 'pending', backoffMs: 60_000 })
    expect(troubles).toHaveLength(2)
    expect(encodePayload(letter.payload.bytes).size).toBe(letter.payload.size)
  })
})
