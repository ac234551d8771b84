import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { Failure, Priority, RetryPolicy } from '../letter/letter.ts'
import { checkSchema, schemaFor } from '../check/issues.ts'
import { checkNames, withoutUndefined } from '../check/keys.ts'
import type { Mailbox, MailboxResolver } from '../mailbox.ts'
import type { Observer } from '../observer.ts'
import { optionsShape, policyShape } from './schema.ts'
import { defaultAlertRules, type AlertRule } from '../policy/alerts.ts'
import type { Rule } from '../policy/classify.ts'
import type { MaxRetriesByCategory } from '../policy/retry-limits.ts'
import { templatesOf } from '../policy/templates.ts'
import type { BrakeSettings } from '../policy/flow-control.ts'
import type { Retention } from '../policy/retention.ts'

/** What can be set per queue, and for all queues at once in `QueueOptions`. */
export interface QueuePolicy extends BrakeSettings {
  /** Runs after the first one. Default: 3. */
  maxRetries?: number
  /** Limits for failures of single categories, in place of `maxRetries`: `{ transient: 5, 'rate-limit': 3 }`. */
  maxRetriesByCategory?: MaxRetriesByCategory
  /**
   * Gives up by time instead of by number: a letter is retried until so much time has passed since its capture, or since a
   * person's retry. `maxRetries` is then how many runs in a row may end without a result. Default: the number decides.
   */
  retryForMs?: number
  /** How long to wait between retries. Unless said, the category of each failure decides. */
  backoff?: RetryPolicy
  /** medium unless said. Critical letters go first, and their first retry is immediate. */
  priority?: Priority
  /** How long a handler may run before its signal aborts. 5 minutes unless said. */
  timeoutMs?: number
  /** When resolved and exhausted letters go to the archive, and when archived ones are removed. Never, unless said. */
  retention?: Retention
  /** What its handler needs, by a name of yours. Queues that name the same share its brakes: see `dependencies`. */
  dependency?: string
}

/** Options of `DeadLetterQueue.open`. One flat object, checked once; a key that is not here is refused by name. */
export interface QueueOptions extends QueuePolicy {
  /** Policies of single queues, over the ones given here for all. */
  queues?: Record<string, QueuePolicy>
  /** The brakes of what queues need: they hold for all queues that name it as their `dependency`. */
  dependencies?: Record<string, BrakeSettings>
  /** How many letters may be kept, archived ones aside. No limit unless said. */
  maxItems?: number
  /** What happens at `maxItems`: refuse, or remove the longest resolved letters. */
  overflow?: 'reject' | 'evict-resolved'
  /** Larger payloads are refused with TOO_LARGE. 16 MiB unless said. */
  maxPayloadBytes?: number
  /**
   * False: failures are not kept. Guarded calls throw as before, `enqueue` rejects with CAPTURE_DISABLED, and a workflow reports
   * `disabled`. Default: true.
   */
  capture?: boolean
  /** False: `start()` redelivers nothing in this process. Default: true. */
  redeliver?: boolean
  /** An index that follows the store and finds letters by full text, as in `opensearch://localhost:9200`. */
  search?: string
  /**
   * What becomes of new letters while the store cannot be reached. `spool`: they wait on the local disk. `fail`: they
   * are refused, so that their source is not acknowledged. `memory`: they wait in memory and are lost with the
   * process. With `spool` and `memory` the queue also opens while the store is away, and opens the store when it is back.
   * Default: `spool` for a durable store given by URL, `fail` for others.
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
  /** Retries of a failure that no rule knows, within `maxRetries`, before a person is asked. Default: 3. */
  unknownRetries?: number
  /** How often a letter may be replayed, over all its lives; then it is parked. Default: 3. */
  maxReplays?: number
  /**
   * Mailboxes that letters are replayed to, by name: a URL as `openMailbox` takes it, or an open mailbox; or a resolver that finds them.
   * Mailboxes whose loops keep their dead messages here are known without it.
   */
  mailboxes?: MailboxResolver | Readonly<Record<string, string | Mailbox>>
  /** Classifier rules that go before the built-in ones. */
  rules?: readonly Rule[]
  /** Rules for common failure patterns, after `rules`: the names of built-in ones, or your own. None unless said. */
  templates?: readonly (string | Rule)[]
  /** When to raise an alert, in place of `defaultAlertRules`. False: never. */
  alerts?: readonly AlertRule[] | false
  /** How often to look whether a rule for alerts is crossed. 1 min unless said. */
  alertEveryMs?: number
  /** Backoffs by name, for the policy `custom(name)`. */
  backoffs?: Record<string, (retry: number, failure: Failure) => number>
  /** Who hears every event. `dlq.on` adds more. */
  observers?: readonly Observer[]
  /** A name for this process in leases and history. Made up unless given. */
  worker?: string
  /** What letters say about the program that captured them, besides its process id. */
  app?: AppOptions
  clock?: Clock
}

export interface AppOptions {
  name?: string
  version?: string
  /** Default: the host name of the machine. */
  host?: string
}

const code = 'INVALID_CONFIG'
const policySchema = schemaFor<QueuePolicy>(policyShape)
const optionsSchema = schemaFor<QueueOptions>(optionsShape)

/** What has no default: absent means that there is none. */
type Unset =
  | 'backoff'
  | 'retryForMs'
  | 'retention'
  | 'budget'
  | 'dependency'
  | 'maxItems'
  | 'onStoreDown'
  | 'spoolPath'
  | 'search'

/** Options with every default filled in. */
export type Settings = Required<Omit<QueueOptions, Unset | 'clock' | 'worker'>> &
  Pick<QueueOptions, Exclude<Unset, 'maxItems'>> & { maxItems: number }

/** What each option is when it is not said. */
export const defaults = {
  maxRetries: 3,
  maxRetriesByCategory: {},
  priority: 'medium',
  timeoutMs: 5 * 60_000,
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
  alerts: defaultAlertRules,
  alertEveryMs: 60_000,
  backoffs: {},
  observers: [],
  app: {},
} satisfies Settings

/** Options of the operation queue that Redrive replaces, and what to use instead. The page docs/migrating/operation-queue.md has them. */
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

/** Checks the options once and fills in the defaults. Throws INVALID_CONFIG that names what is wrong and what is allowed. */
export function readOptions(options: QueueOptions): Settings {
  for (const map of ['queues', 'dependencies', 'backoffs'] as const)
    checkNames(`option "${map}"`, options[map])
  checkSchema(optionsSchema, options, { thing: 'option', code, renamed: operationNames })
  const { clock: _clock, worker: _worker, ...given } = options
  const settings = { ...defaults, ...said(given) }
  return {
    ...settings,
    app: withoutUndefined(settings.app),
    queues: saidOfEach(settings.queues),
    dependencies: saidOfEach(settings.dependencies),
    rules: [...settings.rules, ...rulesOf(settings.templates)],
  }
}

/** What is left undefined, in a breaker too, must not take the place of a default. */
function said<T extends BrakeSettings>(policy: T): T {
  const { breaker } = policy
  return withoutUndefined(breaker ? { ...policy, breaker: withoutUndefined(breaker) } : policy)
}

/** What is given for a name. Names come from outside, and `constructor` must not find what every object has. */
export function ownOf<T>(byName: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(byName, name) ? byName[name] : undefined
}

function saidOfEach<T extends BrakeSettings>(policies: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(policies).map(([name, policy]) => [name, said(policy)]))
}

function rulesOf(templates: Settings['templates']): Rule[] {
  try {
    return templatesOf(templates)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new RedriveError('INVALID_CONFIG', `option "templates": ${error.message}`)
  }
}

/** Checks the policy of one queue. */
export function readPolicy(policy: QueuePolicy): QueuePolicy {
  checkSchema(policySchema, policy, { thing: 'queue option', code, renamed: operationNames })
  return said(policy)
}
