import * as fc from 'fast-check'
import {
  actions,
  categories,
  priorities,
  reasons,
  recoverabilities,
  severities,
  states,
  type DeadLetter,
  type Failure,
  type HistoryEntry,
  type Json,
  type Payload,
  type RetryPolicy,
  type Source,
} from '../../../src/letter/letter.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { StoredLetter } from '../../../src/store.ts'
import { aLetter } from '../../../src/testing/index.ts'

const text = fc.string({ unit: 'binary', maxLength: 12 })
const count = fc.nat(1_000_000)
const time = fc.nat(2 ** 41).map(toTimestamp)
const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as Json)
const jsonObject = fc.dictionary(text, json, { maxKeys: 3 })

/** A record with some of these keys, as exact optional properties need it. */
function some<T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<Partial<T>> {
  return fc.record(model, { requiredKeys: [] }) as fc.Arbitrary<Partial<T>>
}

const failure: fc.Arbitrary<Failure> = fc
  .tuple(
    fc.record({ name: text, message: text, at: time }),
    some({ code: text, status: count, retryAfterMs: count, detail: text, hint: text, stack: text }),
    fc.array(
      fc.record({ name: text, message: text, at: time, causes: fc.constant<Failure[]>([]) }),
      {
        maxLength: 2,
      },
    ),
  )
  .map(([base, more, causes]) => ({ ...base, ...more, causes }))

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  text.map((value) => new TextEncoder().encode(value.toWellFormed())),
  fc.constant(new TextEncoder().encode('\ufeff{"with":"a byte order mark"}\r\n')),
)

const payloadOf = (version: number): fc.Arbitrary<Payload> =>
  fc
    .tuple(bytes, text, some({ lossy: fc.boolean(), restOf: fc.integer({ min: 1, max: 9 }) }))
    .map(([body, contentType, more]) => ({
      bytes: body,
      contentType,
      size: body.byteLength,
      version,
      ...more,
    }))

const source: fc.Arbitrary<Source> = fc.oneof(
  fc
    .tuple(text, some({ method: text, endpoint: text, context: json }))
    .map(([type, more]): Source => ({ kind: 'operation', type, ...more })),
  fc
    .tuple(text, text, count, some({ replyTo: text, requestId: text, enqueuedAt: time }))
    .map(([mailbox, messageId, deliveries, more]): Source => ({
      kind: 'mailbox',
      mailbox,
      messageId,
      deliveries,
      ...more,
    })),
  fc
    .tuple(text, text, fc.array(text, { maxLength: 3 }))
    .map(([name, taskId, targets]): Source => ({ kind: 'workflow', name, taskId, targets })),
)

const policy: fc.Arbitrary<RetryPolicy> = fc.oneof(
  fc.constant<RetryPolicy>({ kind: 'never' }),
  count.map((delayMs): RetryPolicy => ({ kind: 'fixed', delayMs, jitter: 'full' })),
  text.map((name): RetryPolicy => ({ kind: 'custom', name })),
)

const entry: fc.Arbitrary<HistoryEntry> = fc
  .tuple(
    fc.record({
      at: time,
      actor: text,
      action: fc.constantFrom(...actions),
      from: fc.constantFrom(null, ...states),
      to: fc.constantFrom(null, ...states),
    }),
    some({
      epoch: count,
      note: text,
      failure: fc.record({
        name: text,
        message: text,
        category: fc.constantFrom(...categories),
      }),
    }),
  )
  .map(([base, more]) => ({ ...base, ...more }))

const optionalFields = some<DeadLetter>({
  dedupeKey: text,
  lane: fc.string({ minLength: 1, maxLength: 9 }),
  tenant: text,
  traceparent: text,
  app: fc.record({ host: text, pid: count, name: text }),
  headers: fc.dictionary(text, text, { maxKeys: 3 }),
  task: fc.record({ id: text, description: text, source: text }),
  github: fc.record({ owner: text, repo: text, entityNumber: count }),
  maxRetriesChosen: fc.constant(true as const),
  budgetSince: time,
  deferredSince: time,
  expiresAt: time,
  reason: fc.constantFrom(...reasons),
  review: fc.record({ neededSince: time, note: text }),
} as { [K in keyof DeadLetter]: fc.Arbitrary<DeadLetter[K]> })

const fields = fc.record({
  version: fc.integer({ min: 1, max: 1_000_000 }),
  epoch: count,
  occurrences: count,
  queue: fc.constantFrom('orders', 'mail', 'ü 🚀'),
  source,
  metadata: jsonObject,
  tags: fc.uniqueArray(text, { maxLength: 3 }),
  failure,
  firstFailure: failure,
  category: fc.constantFrom(...categories),
  severity: fc.constantFrom(...severities),
  recoverability: fc.constantFrom(...recoverabilities),
  fingerprint: text,
  priority: fc.constantFrom(...priorities),
  policy,
  attempts: count,
  retries: count,
  maxRetries: count,
  replays: count,
  backoffMs: count,
  failedAt: time,
  deadLetteredAt: time,
  updatedAt: time,
  historyOmitted: count,
  history: fc.array(entry, { maxLength: 3 }),
})

/** Letters with all data that a store can have about them, in any state. */
export const storedLetters: fc.Arbitrary<StoredLetter> = fc
  .tuple(
    fc.uuid({ version: 7 }),
    fc.constantFrom(...states),
    fields,
    optionalFields,
    payloadOf(1),
    fc.option(payloadOf(2), { nil: undefined }),
    fc.uniqueArray(fc.uuid({ version: 7 }), { maxLength: 2 }),
  )
  .map(([id, state, base, more, captured, edited, dependsOn]) => {
    const letter = aLetter({
      id,
      state,
      ...base,
      ...more,
      payload: edited ?? captured,
      ...(dependsOn.length > 0 ? { dependsOn } : {}),
    })
    // A lease has the epoch of its letter.
    if (letter.lease) letter.lease = { ...letter.lease, epoch: letter.epoch }
    return {
      letter,
      ...(edited ? { original: captured } : {}),
      ...(dependsOn.length > 0 ? { waitsFor: dependsOn.slice(0, 1) } : {}),
    }
  })
