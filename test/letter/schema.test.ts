import { describe, expect, it } from 'vitest'
import type { DeadLetter, Failure, Json, RetryPolicy, Source } from '../../src/letter/letter.ts'
import { letterFromJson, letterToJson } from '../../src/letter/schema.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const at = '2026-01-01T00:00:00.000Z'
const failure: Failure = {
  name: 'HttpError',
  message: 'no \0 \u202e',
  code: 'E1',
  status: 503,
  retryAfterMs: 1000,
  stack: 'HttpError: no',
  causes: [{ name: 'Error', message: 'root', causes: [], at }],
  at,
}

/** A letter with every field that a letter can have. */
const full = aLetter({
  dedupeKey: 'k',
  lane: 'l',
  dependsOn: ['a'],
  tenant: 't',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  headers: { 'x-a': '1' },
  task: { id: '1', description: 'd', source: 's' },
  github: { owner: 'o', repo: 'r', entityNumber: 5, entityType: 'pr' },
  metadata: { deep: [{ a: null }], n: 1.5 },
  tags: ['a'],
  payload: {
    bytes: Uint8Array.from({ length: 256 }, (_, byte) => byte),
    contentType: 'application/octet-stream',
    size: 9_000_000,
    version: 2,
    lossy: true,
    reference: 's3://bucket/key',
    keyId: 'key-1',
    restOf: 2,
  },
  failure,
  state: 'archived',
  archivedFrom: 'parked',
  reason: 'operator',
  review: { neededSince: at, decidedBy: 'ada', decidedAt: at, decision: 'discard', note: 'n' },
  retryAt: at,
  maxRetriesChosen: true,
  budgetSince: at,
  deferredSince: at,
  expiresAt: at,
  lease: { worker: 'w', epoch: 1, expiresAt: at },
  history: [
    { at, actor: 'capture', action: 'capture', from: null, to: 'pending' },
    {
      at,
      actor: 'w',
      action: 'park',
      from: 'retrying',
      to: 'parked',
      failure: { name: 'E', message: 'm', category: 'unknown' },
      note: 'n',
    },
  ],
  historyOmitted: 3,
  corrupt: 'checksum',
})

const sources: Source[] = [
  { kind: 'operation', type: 't', method: 'GET', endpoint: '/', context: { a: [1] } },
  {
    kind: 'mailbox',
    mailbox: 'm',
    messageId: '1',
    replyTo: 'r',
    requestId: 'q',
    deliveries: 2,
    enqueuedAt: at,
    firstReceivedAt: at,
  },
  { kind: 'workflow', name: 'n', taskId: '1', targets: ['a'], adapter: 'x', context: null },
  {
    kind: 'pipeline',
    cluster: 'c',
    graph: 'g',
    node: 'n',
    topic: 't',
    partition: 0,
    offset: '9007199254740993',
    streamId: 's',
    hops: 1,
  },
]

const policies: RetryPolicy[] = [
  { kind: 'never' },
  { kind: 'immediate' },
  { kind: 'fixed', delayMs: 1, jitter: 'full' },
  { kind: 'linear', stepMs: 1, maxMs: 2, jitter: 'none' },
  { kind: 'exponential', baseMs: 1, factor: 2, maxMs: 5, jitter: 0.2 },
  { kind: 'custom', name: 'mine' },
]

const overWire = (letter: DeadLetter): unknown => JSON.parse(JSON.stringify(letterToJson(letter)))

/** The JSON of a letter with something different at a path. */
function changed(path: string, value: unknown): unknown {
  const json = overWire(full)
  const keys = path.split('.')
  const last = keys.pop()!
  let holder = json as Record<string, unknown>
  for (const key of keys) holder = holder[key] as Record<string, unknown>
  if (value === undefined) delete holder[last]
  else Object.defineProperty(holder, last, { value, enumerable: true, configurable: true })
  return json
}

describe('letterToJson', () => {
  it('writes the bytes as base64 and all other fields unchanged', () => {
    const json: Json = letterToJson(full)
    expect(json).toEqual({
      ...full,
      payload: { ...full.payload, bytes: Buffer.from(full.payload.bytes).toString('base64') },
    })
  })
})

describe('letterFromJson', () => {
  it('reads every field of a letter', () => {
    expect(letterFromJson(overWire(full))).toStrictEqual({ ok: true, letter: full })
  })

  it.each(['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived'] as const)(
    'reads a letter that is %s',
    (state) => {
      const letter = aLetter({ state })
      expect(letterFromJson(overWire(letter))).toStrictEqual({ ok: true, letter })
    },
  )

  it.each(sources)('reads a source of kind $kind', (source) => {
    expect(letterFromJson(overWire({ ...full, source }))).toMatchObject({ letter: { source } })
  })

  it.each(policies)('reads a policy of kind $kind', (policy) => {
    expect(letterFromJson(overWire({ ...full, policy }))).toMatchObject({ letter: { policy } })
  })

  it.each([
    ['state', 'limbo', /^state: /],
    ['priority', 'HIGH', /^priority: /],
    ['reason', 'mood', /^reason: /],
    ['archivedFrom', 'archived', /^archivedFrom: /],
    ['category', undefined, /^category: /],
    ['failedAt', '2026-01-01', /^failedAt: must be a timestamp/],
    ['failedAt', '2026-01-01T00:00:00Z', /^failedAt: must be a timestamp/],
    ['failedAt', '2026-01-01T00:00:00.000+01:00', /^failedAt: /],
    ['failedAt', '2026-02-30T00:00:00.000Z', /^failedAt: /],
    ['failedAt', 0, /^failedAt: /],
    ['history.1.action', 'explode', /^history\.1\.action: /],
    ['history.1.at', 'soon', /^history\.1\.at: /],
    ['failure.causes.0.message', 5, /^failure\.causes\.0\.message: /],
    ['failure.causes.0.extra', 5, /^failure\.causes\.0: .*"extra"/],
    ['payload.bytes', '!', /^payload\.bytes: /],
    ['payload.bytes', [1, 2], /^payload\.bytes: /],
    ['payload.size', -1, /^payload\.size: /],
    ['version', 0, /^version: /],
    ['retries', 1.5, /^retries: /],
    ['policy.kind', 'sometimes', /^policy\.kind: /],
    ['source.kind', 'dream', /^source\.kind: /],
    ['source.extra', 1, /^source: .*"extra"/],
    ['headers.x', 5, /^headers: /],
    ['metadata', [], /^metadata: /],
    ['unknownKey', 1, /"unknownKey"/],
    ['__proto__', { admin: true }, /"__proto__"/],
    ['id', '', /^id: /],
  ])('rejects %s with the value %j, and names the path', (path, value, problem) => {
    const result = letterFromJson(changed(path, value))
    expect(result).toEqual({ ok: false, problem: expect.stringMatching(problem) })
  })

  it.each([null, undefined, 5, 'letter', [], {}, () => 0])('rejects %o', (value) => {
    expect(letterFromJson(value)).toMatchObject({ ok: false, problem: expect.any(String) })
  })

  it('rejects a size other than that of the bytes, unless the body is stored elsewhere', () => {
    const letter = aLetter()
    const wrong = { ...letter, payload: { ...letter.payload, size: 5 } }
    expect(letterFromJson(overWire(wrong))).toEqual({
      ok: false,
      problem: 'payload.size: must be 11, the number of bytes, got 5',
    })
    const elsewhere = { ...wrong, payload: { ...wrong.payload, reference: 'file:x' } }
    expect(letterFromJson(overWire(elsewhere)).ok).toBe(true)
  })

  it('keeps __proto__ as a key of headers and metadata, without prototype pollution', () => {
    const text = JSON.stringify(overWire(aLetter({ headers: { a: '1' } })))
      .replace('"headers":{', '"headers":{"__proto__":"x",')
      .replace('"metadata":{', '"metadata":{"__proto__":{"admin":true}')
    const result = letterFromJson(JSON.parse(text))
    expect(result.ok).toBe(true)
    if (!result.ok) return
    expect(Object.keys(result.letter.headers!)).toEqual(['__proto__', 'a'])
    expect(Object.keys(result.letter.metadata)).toEqual(['__proto__'])
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
  })

  it('rejects JSON that is nested too deeply, without throwing', () => {
    let cause: object = { name: 'E', message: 'm', causes: [], at }
    for (let level = 0; level < 100_000; level++)
      cause = { name: 'E', message: 'm', causes: [cause], at }
    expect(letterFromJson(changed('failure', cause)).ok).toBe(false)
    const deep: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
    expect(letterFromJson(changed('metadata', { deep })).ok).toBe(false)
  })
})
