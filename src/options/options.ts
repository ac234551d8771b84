import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { Transform } from '../letter/bulk-action.ts'
import type { Failure, Priority, RetryPolicy } from '../letter/letter.ts'
import { checkSchema, schemaFor } from '../check/issues.ts'
import { checkNames, withoutUndefined } from '../check/keys.ts'
import type { JsonSchema } from '../check/payload-schema.ts'
import type { ReplaySafety } from '../letter/replay-safety.ts'
import type { Mailbox, MailboxResolver } from '../mailbox.ts'
import type { Observer } from '../observer.ts'
import type { StoreCall } from '../store.ts'
import {
  provideKeys,
  isKeyProvider,
  type ConfiguredKeys,
  type KeyProvider,
} from '../check/encryption-keys.ts'
import { findFixWithoutVersion, needsVersion, type FixOptions } from './repair-shape.ts'
import { optionsShape, policyShape } from './schema.ts'
import type { Target } from '../observers/notify/target.ts'
import { defaultAlertRules, type AlertRule } from '../policy/alert-rule.ts'
import type { Rule } from '../policy/classify.ts'
import type { FingerprintRule } from '../policy/fingerprint-rules.ts'
import type { RedactOptions } from '../policy/redaction/redaction.ts'
import type { MaxRetriesByCategory } from '../policy/retry-limits.ts'
import { templatesOf } from '../policy/templates.ts'
import type { FlowSettings } from '../policy/flow-control.ts'
import type { Retention } from '../policy/retention.ts'

/** Options of one queue. In `QueueOptions` they apply to all queues. */
export interface QueuePolicy extends FlowSettings {
  /** Maximum number of retries after the first run. Default: 3. */
  maxRetries?: number
  /** Limits by failure category, in place of `maxRetries`: `{ transient: 5, 'rate-limit': 3 }`. */
  maxRetriesByCategory?: MaxRetriesByCategory
  /**
   * Limits retries by time instead of by number: a letter is retried until this much time has
   * passed since its capture, or since a person retried it. `maxRetries` then limits consecutive
   * runs that end without a result. Default: no time limit.
   */
  retryForMs?: number
  /** Delay between retries. Default: depends on the category of each failure. */
  backoff?: RetryPolicy
  /** Critical letters run first, and their first retry is immediate. Default: medium. */
  priority?: Priority
  /** Maximum run time of a handler; then its signal aborts. Default: 5 minutes. */
  timeoutMs?: number
  /**
   * When resolved and exhausted letters are archived, and when archived letters are removed.
   * Default: never.
   */
  retention?: Retention
  /**
   * Name of the service that the handler calls. Queues with the same name share its limits: see
   * `dependencies`.
   */
  dependency?: string
  /**
   * Names of headers, in any case, that an edit must not change. Headers that begin with `redrive-`
   * are always locked. Default: no others.
   */
  lockedHeaders?: readonly string[]
  /**
   * JSON Schema (draft 2020-12 or 7) that the payload must satisfy after an edit. Formats are not
   * checked. Default: none.
   */
  payloadSchema?: JsonSchema
  /**
   * Whether letters may be published again: `safe`; `idempotent-key`: only with an
   * `idempotency-key` header, or a chosen dedupeKey that is sent as this header; or `never`.
   * Default: safe.
   */
  replay?: ReplaySafety
  /**
   * True: letters are replayed, or retried by a bulk action, only once their group is resolved in
   * `app.version` or an earlier version. Needs `app.version`. Default: false.
   */
  requireFix?: boolean
  /**
   * How long a replayed letter waits before it is resolved, to see whether its message dies again:
   * until then it is parked with the reason `replayed`. At most 30 days. Default: 0, it is resolved
   * at once.
   */
  confirmReplayMs?: number
  /**
   * Hides secrets and personal data from callers of the server without the permission
   * `payload:reveal`, from logs and notifications, and with `atCapture` from the store. The option
   * of a queue replaces that for all queues. Default: nothing is hidden.
   */
  redact?: RedactOptions
  /**
   * Where the person or other data subject of a letter is named, such as `payload.user.id` or
   * `metadata.customer`. `eraseSubject` erases all its letters. Default: letters name none.
   */
  subject?: string
}

/**
 * Options of `DeadLetterQueue.open`. They are checked once; an unknown key is an error that names
 * the key.
 */
export interface QueueOptions extends QueuePolicy {
  /** Options by queue. They override the options for all queues. */
  queues?: Record<string, QueuePolicy>
  /** Limits by dependency. They are shared by all queues that name it as their `dependency`. */
  dependencies?: Record<string, FlowSettings>
  /** Maximum number of stored letters, excluding archived ones. Default: no limit. */
  maxItems?: number
  /**
   * What happens at `maxItems`: reject new letters, or remove the letters that were resolved first.
   * Default: reject.
   */
  overflow?: 'reject' | 'evict-resolved'
  /** Larger payloads are rejected with TOO_LARGE. Default: 16 MiB. */
  maxPayloadBytes?: number
  /**
   * False: failures are not stored. Guarded calls throw as before, `enqueue` rejects with
   * CAPTURE_DISABLED, and a workflow reports `disabled`. Default: true.
   */
  capture?: boolean
  /** False: `start()` redelivers nothing in this process. Default: true. */
  redeliver?: boolean
  /**
   * URL of an index that follows the store, for full-text search, such as
   * `opensearch://localhost:9200`.
   */
  search?: string
  /**
   * Encrypts payloads and headers before they reach the store: keys by id and the id of the current
   * one, or a key provider. Letters that were stored before stay readable. Default: no encryption.
   */
  encryption?: ConfiguredKeys | KeyProvider
  /**
   * Where new letters go while the store is unreachable. `spool`: to the local disk. `fail`: they
   * are rejected, so that their source is not acknowledged. `memory`: they wait in memory and are
   * lost with the process. With `spool` and `memory` the queue also opens while the store is
   * unreachable, and opens the store later. Default: `spool` for a durable store given by URL,
   * otherwise `fail`.
   */
  onStoreDown?: 'spool' | 'fail' | 'memory'
  /**
   * Folder of the spool, on a local disk. Default: next to the file of a SQLite store, otherwise
   * `.redrive`.
   */
  spoolPath?: string
  /** Maximum size of the spool; further letters are rejected. Default: 1 GiB. */
  spoolMaxBytes?: number
  /** How long a write to the store may take before its letters go to the spool. Default: 5 s. */
  spoolAfterMs?: number
  /** Maximum number of handlers that run at the same time. Default: 10. */
  maxConcurrent?: number
  /** Maximum number of letters per claim, within `maxConcurrent`. Default: 100. */
  claimBatch?: number
  /** A worker that does not renew its leases for this long loses its letters. Default: 30 s. */
  leaseMs?: number
  /**
   * Poll interval for due letters of other processes. Letters of this process run at once. Default:
   * 1 s.
   */
  pollMs?: number
  /** How often to archive, expire and clean up letters. Default: 5 s. */
  sweepMs?: number
  /** How long a handler may take to return after its signal aborted. Default: 5 s. */
  graceMs?: number
  /**
   * Retries of a failure that matches no rule, within `maxRetries`; then it waits for a review.
   * Default: 3.
   */
  unknownRetries?: number
  /** How often a letter may be replayed in total; then it is parked. Default: 3. */
  maxReplays?: number
  /** Bulk actions on more letters than `above` need a second person. Default: none does. */
  approval?: { above: number }
  /**
   * Mailboxes that letters are replayed to, by name: a URL for `openMailbox` or an open mailbox; or
   * a resolver. Mailboxes whose loops store their dead messages in this queue are known already.
   */
  mailboxes?: MailboxResolver | Readonly<Record<string, string | Mailbox>>
  /** Classifier rules that are tried before the built-in rules. */
  rules?: readonly Rule[]
  /**
   * Rules for common failure patterns, tried after `rules`: names of built-in templates, or rules.
   * Default: none.
   */
  templates?: readonly (string | Rule)[]
  /** Rules that give letters a fingerprint of your choice. The first match is used. */
  fingerprints?: readonly FingerprintRule[]
  /** Alert rules. False: no alerts. Default: `defaultAlertRules`. */
  alerts?: readonly AlertRule[] | false
  /** How often to evaluate the alert rules. Default: 1 min. */
  alertEveryMs?: number
  /** Where alerts are sent, by name: `{ team: slack({ url }) }`. Default: nowhere. */
  notify?: Readonly<Record<string, Target>>
  /** URL of the server for people, for links in notifications. */
  baseUrl?: string
  /** Backoff functions by name, for the policy `custom(name)`. */
  backoffs?: Record<string, (retry: number, failure: Failure) => number>
  /** Functions for bulk edits, by name: they get the payload of a letter and return the new one. */
  transforms?: Record<string, Transform>
  /** Observers that receive every event. `dlq.on` adds more. */
  observers?: readonly Observer[]
  /**
   * Gets every call of the store after it has ended: its method, duration, number of items and
   * error code. Calls within a span of OpenTelemetry then have spans of their own.
   */
  onStoreCall?: (call: StoreCall) => void
  /** Name of this process in leases and history. Default: a random name. */
  worker?: string
  /** The program that captures, as stored in letters next to its process id. */
  app?: AppOptions
  clock?: Clock
}

export interface AppOptions {
  name?: string
  version?: string
  /** Default: the host name. */
  host?: string
}

const code = 'INVALID_CONFIG'
const policySchema = schemaFor<QueuePolicy>(policyShape)
const optionsSchema = schemaFor<QueueOptions>(optionsShape)

/** Options without a default. */
type Unset =
  | 'backoff'
  | 'retryForMs'
  | 'retention'
  | 'budget'
  | 'dependency'
  | 'payloadSchema'
  | 'redact'
  | 'subject'
  | 'maxItems'
  | 'approval'
  | 'onStoreDown'
  | 'spoolPath'
  | 'search'
  | 'encryption'
  | 'onStoreCall'
  | 'baseUrl'

/** Options with every default filled in. */
export type Settings = Required<Omit<QueueOptions, Unset | 'clock' | 'worker'>> &
  Pick<QueueOptions, Exclude<Unset, 'maxItems' | 'encryption'>> & {
    maxItems: number
    encryption?: KeyProvider
  }

/** The default of each option. */
export const defaults = {
  maxRetries: 3,
  maxRetriesByCategory: {},
  priority: 'medium',
  timeoutMs: 5 * 60_000,
  lockedHeaders: [],
  replay: 'safe',
  requireFix: false,
  confirmReplayMs: 0,
  breaker: {},
  concurrency: {},
  queues: {},
  dependencies: {},
  maxItems: Infinity,
  overflow: 'reject',
  maxPayloadBytes: 16 * 1024 ** 2,
  capture: true,
  redeliver: true,
  spoolMaxBytes: 1024 ** 3,
  spoolAfterMs: 5000,
  maxConcurrent: 10,
  claimBatch: 100,
  leaseMs: 30_000,
  pollMs: 1000,
  sweepMs: 5000,
  graceMs: 5000,
  unknownRetries: 3,
  maxReplays: 3,
  mailboxes: {},
  rules: [],
  templates: [],
  fingerprints: [],
  alerts: defaultAlertRules,
  alertEveryMs: 60_000,
  notify: {},
  backoffs: {},
  transforms: {},
  observers: [],
  app: {},
} satisfies Settings

/**
 * Options of the operation queue that Redrive replaces, and what to use instead. See
 * docs/migrating/operation-queue.md.
 */
export const operationNames: Readonly<Record<string, string>> = {
  defaultPriority: 'priority',
  initialBackoffMs: 'backoff: exponential({ baseMs })',
  maxBackoffMs: 'backoff: exponential({ maxMs })',
  backoffMultiplier: 'backoff: exponential({ factor })',
  processIntervalMs: 'pollMs',
  processBatchSize: 'claimBatch',
  ageToCleanup: 'retention: { archiveAfterMs, removeAfterMs }',
  autoCleanup: 'retention: { archiveAfterMs, removeAfterMs }',
  storageType: 'a store URL as the first argument of open, as in sqlite:redrive.db',
  storagePath: 'a store URL as the first argument of open, as in sqlite:redrive.db',
}

/**
 * Checks the options once and fills in the defaults. Throws INVALID_CONFIG that names what is wrong
 * and what is allowed.
 */
export function readOptions(options: QueueOptions): Settings {
  for (const map of ['queues', 'dependencies', 'backoffs', 'transforms'] as const)
    checkNames(`option "${map}"`, options[map])
  checkSchema(optionsSchema, options, { thing: 'option', code, renamed: operationNames })
  const { clock: _clock, worker: _worker, encryption, ...given } = options
  const settings = { ...defaults, ...removeUndefined(given) }
  checkVersion(settings)
  return {
    ...settings,
    ...(encryption ? { encryption: keysOf(encryption) } : {}),
    app: withoutUndefined(settings.app),
    queues: removeUndefinedInEach(settings.queues),
    dependencies: removeUndefinedInEach(settings.dependencies),
    rules: [...settings.rules, ...rulesOf(settings.templates)],
  }
}

/** Rejects the option `requireFix` if the version of the application is unknown. */
export function checkVersion(options: FixOptions): void {
  const path = findFixWithoutVersion(options)
  if (path) throw new RedriveError(code, `option "${path.join('.')}" ${needsVersion}`)
}

function keysOf(given: ConfiguredKeys | KeyProvider): KeyProvider {
  return isKeyProvider(given) ? given : provideKeys(given)
}

/** Removes keys that are undefined, also in the breaker, so that they do not replace a default. */
function removeUndefined<T extends FlowSettings>(policy: T): T {
  const { breaker } = policy
  return withoutUndefined(breaker ? { ...policy, breaker: withoutUndefined(breaker) } : policy)
}

/**
 * The own value of a name. Names come from outside: `constructor` must not return an inherited
 * value.
 */
export function ownOf<T>(byName: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(byName, name) ? byName[name] : undefined
}

function removeUndefinedInEach<T extends FlowSettings>(
  policies: Record<string, T>,
): Record<string, T> {
  return Object.fromEntries(
    Object.entries(policies).map(([name, policy]) => [name, removeUndefined(policy)]),
  )
}

function rulesOf(templates: Settings['templates']): Rule[] {
  try {
    return templatesOf(templates)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new RedriveError('INVALID_CONFIG', `option "templates": ${error.message}`)
  }
}

/** Checks the options of one queue. */
export function readPolicy(policy: QueuePolicy): QueuePolicy {
  checkSchema(policySchema, policy, { thing: 'queue option', code, renamed: operationNames })
  return removeUndefined(policy)
}
