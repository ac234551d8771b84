import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RedriveError } from '../../src/errors.ts'
import { DeadLetterQueue } from '../../src/index.ts'
import { reasons, type DeadLetter, type State } from '../../src/letter/letter.ts'
import { encodePayload } from '../../src/letter/payload.ts'
import { importOperationFile } from '../../src/transfer/operation-file/import.ts'
import { readOperationFile } from '../../src/transfer/operation-file/read.ts'
import { writeOperationFile } from '../../src/transfer/operation-file/write.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const enqueuedAt = Date.UTC(2025, 5, 1, 12)

/** An item as an operation queue writes it. */
function anItem(overrides: object = {}): Record<string, unknown> {
  return {
    id: `dlq_${enqueuedAt}_k3j9x`,
    taskId: 'task-7',
    enqueuedAt,
    updatedAt: enqueuedAt + 60_000,
    status: 'queued',
    priority: 'high',
    retryCount: 1,
    maxRetries: 5,
    retryAfter: enqueuedAt + 120_000,
    backoffMs: 60_000,
    error: {
      category: 'network',
      message: 'socket hang up',
      code: 'ECONNRESET',
      stack: 'ConnectionError: socket hang up\n    at call (llm.ts:1:1)',
      timestamp: enqueuedAt - 5,
    },
    operation: {
      type: 'llm_call',
      method: 'POST',
      endpoint: '/v1/messages',
      payload: { prompt: 'hello', n: [1, null, true] },
      context: { run: 12 },
    },
    task: { id: 'task-7', description: 'answer the issue', source: 'github' },
    github: { owner: 'o', repo: 'r', entityNumber: 4, entityType: 'issue' },
    metadata: { enqueuedBy: 'system', tags: ['a', 'b'] },
    history: [
      { timestamp: enqueuedAt, action: 'enqueued', status: 'queued' },
      { timestamp: enqueuedAt + 30_000, action: 'retry', status: 'retrying' },
      {
        timestamp: enqueuedAt + 60_000,
        action: 'failed',
        status: 'queued',
        error: { category: 'unknown', message: 'again' },
      },
    ],
    ...overrides,
  }
}

const read = (...items: unknown[]) => readOperationFile(JSON.stringify(items))
const readOne = (overrides: object = {}): DeadLetter => read(anItem(overrides)).letters[0]!

describe('readOperationFile', () => {
  it('reads an item with all its fields', () => {
    expect(readOne()).toMatchObject({
      queue: 'llm_call',
      source: { kind: 'operation', type: 'llm_call', method: 'POST', context: { run: 12 } },
      state: 'pending',
      retryAt: '2025-06-01T12:02:00.000Z',
      backoffMs: 60_000,
      retries: 1,
      maxRetries: 5,
      priority: 'high',
      category: 'network',
      failure: { name: 'ConnectionError', message: 'socket hang up', code: 'ECONNRESET' },
      failedAt: '2025-06-01T11:59:59.995Z',
      deadLetteredAt: '2025-06-01T12:00:00.000Z',
      updatedAt: '2025-06-01T12:01:00.000Z',
      task: { id: 'task-7' },
      github: { owner: 'o', entityNumber: 4 },
      tags: ['a', 'b'],
      metadata: { importedId: `dlq_${enqueuedAt}_k3j9x` },
      history: [
        { action: 'capture', from: null, to: 'pending', actor: 'system' },
        { action: 'claim', from: 'pending', to: 'retrying' },
        { action: 'reschedule', to: 'pending', failure: { message: 'again', category: 'unknown' } },
      ],
    })
  })

  it('reads the name of the error from its stack', () => {
    const nameOf = (stack?: string): string =>
      readOne({ error: { message: 'x', stack } }).failure.name
    expect(nameOf('Error: x\n    at a.ts:1:1')).toBe('Error')
    expect(nameOf('TypeError [ERR_INVALID_URL]: x\n    at a.ts:1:1')).toBe('TypeError')
    expect(nameOf('ConnectionError: x')).toBe('ConnectionError')
    expect(nameOf()).toBe('Error')
  })

  it('maps every category name of the format to ours, and keeps it as the detail', () => {
    const expected: Record<string, string> = {
      llm_rate_limit: 'rate-limit',
      llm_timeout: 'timeout',
      llm_quota_exceeded: 'resource',
      llm_invalid_request: 'validation',
      llm_server_error: 'dependency',
      github_rate_limit: 'rate-limit',
      github_timeout: 'timeout',
      github_not_found: 'permanent',
      github_forbidden: 'permission',
      github_server_error: 'dependency',
      github_validation: 'validation',
      tool_timeout: 'timeout',
      tool_not_found: 'permanent',
      tool_execution: 'unknown',
      tool_permission: 'permission',
      verification_failed: 'unknown',
      type_error: 'unknown',
      lint_error: 'unknown',
      test_failure: 'unknown',
      build_failed: 'unknown',
      file_not_found: 'permanent',
      file_permission: 'permission',
      file_system: 'permanent',
      network_error: 'network',
      dns_error: 'network',
      connection_error: 'network',
      config_invalid: 'permanent',
      config_missing: 'permanent',
      skill_not_found: 'permanent',
      skill_validation: 'validation',
      skill_timeout: 'timeout',
      system_error: 'unknown',
      dependency_error: 'permanent',
    }
    expect(Object.keys(expected)).toHaveLength(33)
    for (const [name, category] of Object.entries(expected)) {
      const letter = readOne({ error: { message: 'x', category: name } })
      expect([name, letter.category, letter.failure.detail]).toEqual([name, category, name])
    }
    for (const odd of ['constructor', '__proto__', 'no_such_name'])
      expect(readOne({ error: { message: 'x', category: odd } }).category).toBe('unknown')
  })

  it('gives an error the group of a live capture', async () => {
    const dlq = await DeadLetterQueue.open('memory:')
    const errors = [
      new Error('the answer 17 was wrong'),
      new TypeError('x is not a function'),
      Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' }),
    ]
    for (const error of errors) {
      const live = await dlq.enqueue({ type: 'llm_call' }, error)
      const { message, stack, code } = error as Error & { code?: string }
      const imported = readOne({ error: { category: 'network_error', message, stack, code } })
      expect(imported.fingerprint).toBe(live.fingerprint)
      expect(imported.failure.name).toBe(live.failure.name)
    }
    await dlq.close()
  })

  it('stores the payload as JSON with the same value', () => {
    const { payload } = readOne()
    expect(payload.contentType).toBe('application/json')
    expect(Buffer.from(payload.bytes).toString()).toBe('{"prompt":"hello","n":[1,null,true]}')
  })

  it.each([
    ['queued', 'pending', undefined],
    ['retrying', 'pending', undefined],
    ['success', 'resolved', undefined],
    ['failed', 'parked', 'permanent'],
    ['abandoned', 'exhausted', 'retries-exhausted'],
    ['manual_review', 'parked', 'operator'],
  ])('reads %s as %s', (status, state, reason) => {
    expect(readOne({ status })).toMatchObject({ state, ...(reason ? { reason } : {}) })
  })

  it('makes an item that was being retried due immediately', () => {
    expect(readOne({ status: 'retrying' }).retryAt).toBe('2025-06-01T12:01:00.000Z')
  })

  it('reads an item that waits for review with an undecided review and its notes', () => {
    const metadata = { reviewed: true, reviewedAt: enqueuedAt, reviewedBy: 'system', notes: 'look' }
    const { review } = readOne({ status: 'manual_review', metadata })
    expect(review).toEqual({ neededSince: '2025-06-01T12:00:00.000Z', note: 'look' })
  })

  it('reads a reviewed item with its decided review', () => {
    const metadata = { reviewed: true, reviewedAt: enqueuedAt, reviewedBy: 'ada' }
    expect(readOne({ metadata }).review).toMatchObject({
      decidedBy: 'ada',
      decidedAt: '2025-06-01T12:00:00.000Z',
    })
  })

  it('derives the same id for the same item, sorted by its time', () => {
    const [first, again] = [readOne(), readOne({ status: 'success', updatedAt: enqueuedAt + 9 })]
    expect(first.id).toBe(again.id)
    expect(first.id).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    expect(Number.parseInt(first.id.replace('-', '').slice(0, 12), 16)).toBe(enqueuedAt)
    expect(readOne({ id: 'dlq_other' }).id).not.toBe(first.id)
  })

  it('keeps an id that is a UUID', () => {
    const id = '01995c3a-1111-7222-8333-444455556666'
    expect(readOne({ id })).toMatchObject({ id, metadata: {} })
  })

  it.each([
    ['rate_limit', 'rate-limit'],
    ['TIMEOUT', 'timeout'],
    ['configuration', 'unknown'],
  ])('reads the category %s as %s and writes it back', (category, ours) => {
    const letter = readOne({ error: { category, message: 'm' } })
    expect(letter.category).toBe(ours)
    expect(JSON.parse(writeOperationFile([letter]))).toMatchObject([{ error: { category } }])
  })

  it('accepts an item with only the required fields', () => {
    const least = {
      id: 'x',
      enqueuedAt: 0,
      status: 'queued',
      error: { message: '' },
      operation: { type: 'q' },
    }
    const { letters, problems } = read(least)
    expect(problems).toEqual([])
    expect(letters).toMatchObject([
      { queue: 'q', retries: 0, maxRetries: 3, state: 'pending', history: [{ action: 'capture' }] },
    ])
  })

  it('reports invalid items by their index and reads the others', () => {
    const { letters, problems } = read(
      null,
      anItem(),
      anItem({ id: 7 }),
      anItem({ status: 'done' }),
      anItem({ id: 'b', operation: { type: 'a\u001bb' } }),
      anItem({ id: 'c', enqueuedAt: -1 }),
      anItem({ id: 'd', history: [{ action: 'sang' }] }),
      anItem({ id: 'e', retryCount: 1.5 }),
      anItem(),
      [],
      'text',
    )
    expect(letters).toHaveLength(1)
    expect(problems.map((problem) => problem.split(':')[0])).toEqual(
      [0, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((index) => `item ${index}`),
    )
    expect(problems[1]).toContain('id')
    expect(problems[2]).toContain('status')
    expect(problems[7]).toBe('item 8: has the same id as item 1, which is used')
  })

  it.each([
    ['', 'empty'],
    ['  \n', 'empty'],
    ['{}', 'array'],
    ['[{"id":', 'not JSON'],
    ['null', 'array'],
    ['['.repeat(200_000), 'not JSON'],
  ])('rejects a file that is not an array of items', (text, why) => {
    expect(() => readOperationFile(text)).toThrowError(
      expect.objectContaining({
        code: 'INVALID_INPUT',
        message: expect.stringContaining(why) as string,
      }) as RedriveError,
    )
  })

  it('treats __proto__ and constructor as ordinary keys', () => {
    const text = JSON.stringify([anItem()]).replace(
      '"enqueuedBy"',
      '"__proto__":{"polluted":1},"constructor":2,"enqueuedBy"',
    )
    const { letters, problems } = readOperationFile(text)
    expect(problems).toEqual([])
    expect(Object.keys(letters[0]!.metadata)).toEqual(['__proto__', 'constructor', 'importedId'])
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
  })

  it('limits a long history and counts the omitted entries', () => {
    const history = Array.from({ length: 300 }, (_, index) => ({
      timestamp: index,
      action: 'retry',
      status: 'retrying',
    }))
    const letter = readOne({ history })
    expect(letter.history).toHaveLength(50)
    expect(letter.historyOmitted).toBe(250)
    expect([letter.history[0]!.at, letter.history[1]!.at]).toEqual([
      '1970-01-01T00:00:00.000Z',
      '1970-01-01T00:00:00.251Z',
    ])
  })

  it('never throws for an array of any items', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.jsonValue(), hostileItem)), (items) => {
        const { letters, problems } = readOperationFile(JSON.stringify(items))
        expect(letters.length + problems.length).toBe(items.length)
      }),
    )
  })
})

/** Items with one field replaced by anything. */
const hostileItem = fc
  .tuple(fc.constantFrom(...Object.keys(anItem())), fc.jsonValue())
  .map(([key, value]) => anItem({ [key]: value }))

describe('writeOperationFile', () => {
  it.each(['queued', 'success', 'failed', 'abandoned', 'manual_review'])(
    'writes an item with status %s unchanged',
    (status) => {
      const metadata = {
        enqueuedBy: 'system',
        tags: ['a'],
        extra: { own: [1] },
        ...(status === 'failed' || status === 'manual_review'
          ? { reviewed: false, reviewedAt: enqueuedAt, notes: 'look', reviewedBy: 'x' }
          : { notes: 'a note' }),
      }
      const retryAfter = status === 'queued' ? enqueuedAt + 5 : enqueuedAt + 60_000
      const item = anItem({ status, metadata, retryAfter })
      expect(JSON.parse(writeOperationFile(read(item).letters))).toEqual([item])
    },
  )

  it.each<[State, Partial<DeadLetter>, string]>([
    ['pending', {}, 'queued'],
    ['retrying', {}, 'retrying'],
    ['resolved', {}, 'success'],
    ['exhausted', {}, 'abandoned'],
    ['parked', { reason: 'permanent' }, 'failed'],
    ['parked', { reason: 'operator' }, 'manual_review'],
    ['parked', { reason: 'no-handler' }, 'manual_review'],
    ['archived', { archivedFrom: 'exhausted' }, 'abandoned'],
    ['archived', { archivedFrom: 'resolved' }, 'success'],
  ])('writes %s %o as %s', (state, also, status) => {
    expect(JSON.parse(writeOperationFile([aLetter({ state, ...also })]))).toMatchObject([
      { status },
    ])
  })

  it.each([
    ['bytes', new Uint8Array([0, 255, 10])],
    ['a JS value', { when: new Date(0), big: 7n }],
    ['nothing', undefined],
    ['text', 'plain'],
  ])('preserves %s byte for byte', (_, value) => {
    const payload = encodePayload(value)
    const { letters } = readOperationFile(writeOperationFile([aLetter({ payload })]))
    expect(Buffer.from(letters[0]!.payload.bytes)).toEqual(Buffer.from(payload.bytes))
    expect(letters[0]!.payload.contentType).toBe(payload.contentType)
  })

  it('preserves unusual JSON notation', () => {
    const payload = encodePayload(
      Buffer.from('{ "n": 1.0, "n": 12345678901234567890 }'),
      'application/json',
    )
    const { letters } = readOperationFile(writeOperationFile([aLetter({ payload })]))
    expect(Buffer.from(letters[0]!.payload.bytes).toString()).toContain('12345678901234567890')
  })

  it('writes every field of the format so that it can be read back', () => {
    fc.assert(
      fc.property(anyLetter, (letter) => {
        const text = writeOperationFile([letter])
        const { letters, problems } = readOperationFile(text)
        expect(problems).toEqual([])
        const [again] = letters
        for (const key of formatKeys) expect(again![key], key).toEqual(letter[key])
        expect(Buffer.from(again!.payload.bytes)).toEqual(Buffer.from(letter.payload.bytes))
        expect(
          again!.history.map(({ at, action, to, actor, note }) => ({
            at,
            action,
            to,
            actor,
            note,
          })),
        ).toEqual(
          letter.history.map(({ at, action, to, actor, note }) => ({
            at,
            action,
            to,
            actor,
            note,
          })),
        )
        expect(JSON.parse(writeOperationFile(letters))).toEqual(JSON.parse(text))
      }),
    )
  })
})

const formatKeys = [
  'id',
  'queue',
  'state',
  'reason',
  'review',
  'priority',
  'retries',
  'maxRetries',
  'retryAt',
  'backoffMs',
  'category',
  'metadata',
  'tags',
  'task',
  'github',
  'deadLetteredAt',
  'updatedAt',
] as const

const timestamp = fc
  .date({ min: new Date(0), max: new Date(8e12), noInvalidDate: true })
  .map((date) => date.toISOString())
const text = fc.string({ unit: 'grapheme', maxLength: 20 })
const name = fc.constantFrom(
  'extra',
  'tags',
  'reviewed',
  'redrive',
  'enqueuedBy',
  'importedId',
  'taskId',
  '__proto__',
  'notes',
)
const stateFields = fc.oneof(
  fc.record({ state: fc.constant<State>('pending'), retryAt: timestamp }),
  fc.record({
    state: fc.constant<State>('exhausted'),
    reason: fc.constant('retries-exhausted' as const),
  }),
  fc.record({ state: fc.constant<State>('resolved') }),
  fc.record({
    state: fc.constant<State>('parked'),
    reason: fc.constantFrom(...reasons),
    review: fc.record({ neededSince: timestamp, note: text }),
  }),
)
const entry = fc.record({
  at: timestamp,
  actor: fc.constantFrom('import', 'capture', 'w1', 'ada'),
  action: fc.constantFrom(
    'claim' as const,
    'reschedule' as const,
    'release' as const,
    'edit' as const,
    'park' as const,
  ),
  from: fc.constant(null),
  to: fc.constantFrom<State>('pending', 'retrying', 'parked', 'archived'),
})
const anyLetter = fc
  .record({
    stateFields,
    at: timestamp,
    updatedAt: timestamp,
    queue: fc.constantFrom('orders', 'λ', 'a b'),
    metadata: fc.dictionary(name, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
    tags: fc.array(text, { maxLength: 3 }),
    payload: fc
      .oneof(fc.jsonValue(), fc.uint8Array({ maxLength: 20 }))
      .map((value) => encodePayload(value)),
    history: fc.array(entry, { maxLength: 5 }),
    task: fc.option(fc.record({ id: text, description: text, source: text }), { nil: undefined }),
    retries: fc.nat(9),
    message: text,
  })
  .map(({ stateFields: fields, at, history, task, message, metadata, ...rest }): DeadLetter => {
    const failure = { name: 'Error', message, causes: [], at }
    const capture = {
      at,
      actor: 'capture',
      action: 'capture' as const,
      from: null,
      to: 'pending' as const,
    }
    const { retryAt: _retryAt, review: _review, ...letter } = aLetter({ state: fields.state })
    return {
      ...letter,
      ...rest,
      ...fields,
      ...(task ? { task } : {}),
      metadata: JSON.parse(JSON.stringify(metadata)) as DeadLetter['metadata'],
      failure,
      firstFailure: failure,
      deadLetteredAt: at,
      history: [capture, ...history],
    }
  })

describe('importOperationFile', () => {
  it('adds new items, and nothing the second time', async () => {
    const store = memoryStore()
    await store.open()
    const file = JSON.stringify([anItem(), anItem({ id: 'second' }), { id: 'bad' }])
    const first = await importOperationFile(store, file)
    expect(first).toMatchObject({
      added: 2,
      duplicates: 0,
      problems: [expect.stringContaining('item 2')],
    })
    expect(await importOperationFile(store, file)).toMatchObject({ added: 0, duplicates: 2 })
    expect((await store.find({})).items).toHaveLength(2)
  })

  it('reports items that exceed maxItems', async () => {
    const store = memoryStore()
    await store.open()
    const file = JSON.stringify([anItem(), anItem({ id: 'second' })])
    const report = await importOperationFile(store, file, { maxItems: 1, overflow: 'reject' })
    expect(report).toMatchObject({ added: 1, problems: [expect.stringContaining('full')] })
  })
})
