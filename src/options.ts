import { z } from 'zod'
import type { Clock } from './clock.ts'
import { RedriveError } from './errors.ts'
import { priorities, type Failure, type Priority, type RetryPolicy } from './letter/letter.ts'
import type { Observer } from './observer.ts'
import { parsePolicy } from './policy/backoff.ts'
import type { BreakerSettings } from './policy/breaker.ts'
import type { Rule } from './policy/classify.ts'
import type { Retention } from './redelivery/sweep.ts'

/** What can be set per queue, and for all queues at once in `QueueOptions`. */
export interface QueuePolicy {
  /** Runs after the first one. 3 unless said. */
  maxRetries?: number
  /** How long to wait between retries. Unless said, the category of each failure decides. */
  backoff?: RetryPolicy
  /** medium unless said. Critical letters go first, and their first retry is immediate. */
  priority?: Priority
  /** How long a handler may run before its signal aborts. 5 minutes unless said. */
  timeoutMs?: number
  /** When resolved and exhausted letters go to the archive, and when archived ones are removed. Never, unless said. */
  retention?: Retention
  /** When a queue's letters wait instead of running into a wall. False: never. */
  breaker?: Partial<BreakerSettings> | false
}

/** Options of `DeadLetterQueue.open`. One flat object, checked once; a key that is not here is refused by name. */
export interface QueueOptions extends QueuePolicy {
  /** Policies of single queues, over the ones given here for all. */
  queues?: Record<string, QueuePolicy>
  /** How many letters may be kept, archived ones aside. No limit unless said. */
  maxItems?: number
  /** What happens at `maxItems`: refuse, or remove the longest resolved letters. */
  overflow?: 'reject' | 'evict-resolved'
  /** Larger payloads are refused with TOO_LARGE. 16 MiB unless said. */
  maxPayloadBytes?: number
  /** An index that follows the store and finds letters by full text, as in `opensearch://localhost:9200`. */
  search?: string
  /**
   * What becomes of new letters while the store cannot be reached. `spool`: they wait on the local disk. `fail`: they
   * are refused, so that their source is not acknowledged. `memory`: they wait in memory and are lost with the
   * process. For a durable store given by URL it is `spool` unless said, for others `fail`.
   */
  onStoreDown?: 'spool' | 'fail' | 'memory'
  /** The folder for them, on a local disk. Beside the file of a SQLite store, else in `.redrive`, unless said. */
  spoolPath?: string
  /** How much may wait there; more is refused. 1 GiB unless said. */
  spoolMaxBytes?: number
  /** How long the store may take to keep letters before they go to the spool. 5 s unless said. */
  spoolAfterMs?: number
  /** Handlers that run at the same time. 10 unless said. */
  maxConcurrent?: number
  /** Letters claimed at once, within `maxConcurrent`. 100 unless said. */
  claimBatch?: number
  /** A worker that is silent for so long has lost its letters. 30 s unless said. */
  leaseMs?: number
  /** How often to look for letters that other processes made due; what this process knows is picked up at once. 1 s unless said. */
  pollMs?: number
  /** How often to archive, expire and tidy. 5 s unless said. */
  sweepMs?: number
  /** How long a handler may take to obey its aborted signal. 5 s unless said. */
  graceMs?: number
  /** Retries of a failure that no rule knows, before a person is asked. 3 unless said. */
  unknownRetries?: number
  /** Classifier rules that go before the built-in ones. */
  rules?: readonly Rule[]
  /** Backoffs by name, for the policy `custom(name)`. */
  backoffs?: Record<string, (retry: number, failure: Failure) => number>
  /** Who hears every event. `dlq.on` adds more. */
  observers?: readonly Observer[]
  /** A name for this process in leases and history. Made up unless given. */
  worker?: string
  clock?: Clock
}

const count = z.int().min(0)
const durationMs = z
  .number()
  .min(0)
  .max(3650 * 86_400_000)
const positiveMs = z
  .number()
  .min(1)
  .max(3650 * 86_400_000)
const aFunction = z.custom<() => unknown>(
  (value) => typeof value === 'function',
  'must be a function',
)
const anObject = z.custom<object>(
  (value) => typeof value === 'object' && value !== null,
  'must be an object',
)

const retryPolicy = z.custom<RetryPolicy>(
  (value) => typeof value === 'object' && parsePolicy(value) !== undefined,
  'must be made by never, immediate, fixed, linear, exponential or custom',
)

const policyShape = {
  maxRetries: count.max(1000).optional(),
  backoff: retryPolicy.optional(),
  priority: z.enum(priorities).optional(),
  timeoutMs: positiveMs.optional(),
  retention: z
    .strictObject({ archiveAfterMs: durationMs.optional(), removeAfterMs: durationMs.optional() })
    .optional(),
  breaker: z
    .union([
      z.literal(false),
      z.strictObject({
        failures: z.int().min(1).optional(),
        openMs: positiveMs.optional(),
        probes: z.int().min(1).optional(),
        successes: z.int().min(1).optional(),
      }),
    ])
    .optional(),
}

const policySchema = z.strictObject(policyShape)

const optionsSchema = z.strictObject({
  ...policyShape,
  queues: z.record(z.string(), policySchema).optional(),
  maxItems: z.int().min(1).optional(),
  overflow: z.enum(['reject', 'evict-resolved']).optional(),
  maxPayloadBytes: z
    .int()
    .min(1)
    .max(1024 ** 3)
    .optional(),
  search: z.string().min(1).optional(),
  onStoreDown: z.enum(['spool', 'fail', 'memory']).optional(),
  spoolPath: z.string().min(1).optional(),
  spoolMaxBytes: z.int().min(1).optional(),
  spoolAfterMs: positiveMs.optional(),
  maxConcurrent: z.int().min(1).max(10_000).optional(),
  claimBatch: z.int().min(1).max(1000).optional(),
  leaseMs: z.number().min(50).max(86_400_000).optional(),
  pollMs: z.number().min(1).max(3_600_000).optional(),
  sweepMs: z.number().min(10).max(3_600_000).optional(),
  graceMs: durationMs.optional(),
  unknownRetries: count.optional(),
  rules: z.array(anObject).optional(),
  backoffs: z.record(z.string(), aFunction).optional(),
  observers: z.array(aFunction).optional(),
  worker: z.string().min(1).max(200).optional(),
  clock: anObject.optional(),
})

/** Options with every default filled in. */
export type Settings = Required<
  Omit<
    QueueOptions,
    | 'backoff'
    | 'retention'
    | 'breaker'
    | 'clock'
    | 'worker'
    | 'maxItems'
    | 'onStoreDown'
    | 'spoolPath'
    | 'search'
  >
> & {
  onStoreDown?: 'spool' | 'fail' | 'memory'
  spoolPath?: string
  search?: string
  backoff?: RetryPolicy
  retention?: Retention
  breaker: Partial<BreakerSettings> | false
  maxItems: number
}

const defaults = {
  maxRetries: 3,
  priority: 'medium',
  timeoutMs: 5 * 60_000,
  breaker: {},
  queues: {},
  maxItems: Infinity,
  overflow: 'reject',
  maxPayloadBytes: 16 * 1024 ** 2,
  spoolMaxBytes: 1024 ** 3,
  spoolAfterMs: 5000,
  maxConcurrent: 10,
  claimBatch: 100,
  leaseMs: 30_000,
  pollMs: 1000,
  sweepMs: 5000,
  graceMs: 5000,
  unknownRetries: 3,
  rules: [],
  backoffs: {},
  observers: [],
} satisfies Settings

/** Checks the options once and fills in the defaults. Throws INVALID_CONFIG that names what is wrong and what is allowed. */
export function readOptions(options: QueueOptions): Settings {
  check(optionsSchema, options, 'option')
  const { clock: _clock, worker: _worker, ...given } = options
  return { ...defaults, ...withoutUndefined(given) }
}

/** Checks the policy of one queue. */
export function readPolicy(policy: QueuePolicy): QueuePolicy {
  check(policySchema, policy, 'queue option')
  return withoutUndefined(policy)
}

function check(schema: z.ZodObject, value: object, what: string): void {
  const result = schema.safeParse(withoutUndefined(value))
  if (result.success) return
  const issue = result.error.issues[0]!
  const path = issue.path.join('.')
  if (issue.code === 'unrecognized_keys') {
    const key = issue.keys[0]!
    const known =
      path.startsWith('queues.') || what !== 'option'
        ? Object.keys(policyShape)
        : Object.keys(schema.shape)
    const near = nearest(key, known)
    const hint = near ? `did you mean "${near}"?` : `known: ${known.join(', ')}`
    throw new RedriveError(
      'INVALID_CONFIG',
      `unknown ${what} "${path ? `${path}.` : ''}${key}": ${hint}`,
    )
  }
  throw new RedriveError(
    'INVALID_CONFIG',
    `${what} "${path}": ${issue.message} (got ${shown(at(value, issue.path))})`,
  )
}

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key],
    value,
  )
}

function shown(value: unknown): string {
  return typeof value === 'object' && value !== null ? 'an object' : String(value).slice(0, 80)
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined)) as T
}

/** The known key that is most like a mistyped one, if any is close. */
export function nearest(key: string, known: readonly string[]): string | undefined {
  const scored = known.map((name) => ({
    name,
    distance: distance(key.toLowerCase(), name.toLowerCase()),
  }))
  const best = scored.sort((a, b) => a.distance - b.distance)[0]
  return best && best.distance <= Math.max(2, key.length / 3) ? best.name : undefined
}

/** Edits (insert, delete, replace) between two short words. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next.push(
        Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)),
      )
    row = next
  }
  return row[b.length]!
}
