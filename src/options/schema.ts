import { z } from 'zod'
import { alertRulesSchema } from '../observers/alerts/schema.ts'
import {
  categories,
  priorities,
  recoverabilities,
  severities,
  type ErrorCategory,
  type Failure,
  type RetryPolicy,
} from '../letter/letter.ts'
import type { Clock } from '../clock/clock.ts'
import type { Transform } from '../letter/bulk-action.ts'
import { functionSchema } from '../check/issues.ts'
import type { Mailbox, MailboxResolver } from '../mailbox.ts'
import type { Observer } from '../observer.ts'
import type { StoreCall } from '../store.ts'
import { longestMs, parsePolicy } from '../policy/backoff.ts'
import { encryption } from './encryption.ts'
import { fingerprintRule } from './fingerprint-rule.ts'
import { redactOption, subjectOption } from './redact-shape.ts'
import { notifyShape } from './notify-shape.ts'
import { repairShape } from './repair-shape.ts'

/** A duration that may be 0. */
export const durationMs = z.number().min(0).max(longestMs)
/** A duration of at least 1 ms. */
export const positiveMs = z.number().min(1).max(longestMs)

const hasFunction =
  (name: string) =>
  (value: unknown): boolean =>
    typeof (value as Record<string, unknown> | null)?.[name] === 'function'
const resolver = z.custom<MailboxResolver>(
  hasFunction('resolve'),
  'must be an object with resolve()',
)
const mailboxForms = 'must be a URL or an open mailbox'
const aMailbox = z.custom<Mailbox>(hasFunction('send'), mailboxForms)
export const mailboxName = z.string().regex(/^\P{Cc}{1,200}$/u)

export const policyForms =
  'must be a retry policy: use never(), immediate(), fixed(), linear(), exponential() or custom()'

const retryPolicy = z.custom<RetryPolicy>(
  (value) => typeof value === 'object' && parsePolicy(value) !== undefined,
  policyForms,
)

const breaker = z.strictObject({
  failures: z
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe('Different letters that fail in a row before the breaker opens. Default: 10.'),
  share: z
    .number()
    .gt(0)
    .max(1)
    .optional()
    .describe('Or the share of failures among the last 2 × failures letters. Default: 0.8.'),
  openMs: positiveMs
    .optional()
    .describe('How long the breaker stays open the first time. Default: 30 s.'),
  maxOpenMs: positiveMs
    .optional()
    .describe(
      'Each failed probe doubles the time that the breaker stays open, up to this. Default: 5 min.',
    ),
  probes: z
    .int()
    .min(1)
    .optional()
    .describe('Letters that run at the same time while the breaker is half-open. Default: 1.'),
  successes: z
    .int()
    .min(1)
    .optional()
    .describe('Probes that must succeed before the breaker closes. Default: 1.'),
  patienceMs: durationMs
    .optional()
    .describe(
      'How long after its first deferral the failed runs of a letter during an outage are not counted. Default: 1 day.',
    ),
})

const budget = z.strictObject({
  perSecond: z
    .number()
    .gt(0)
    .max(1_000_000)
    .describe('Average number of runs per second. May be below 1.'),
  burst: z
    .number()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('Maximum number of runs at once after an idle time. Default: perSecond, at least 1.'),
})

const concurrency = z
  .strictObject({
    max: z.int().min(1).max(10_000).optional().describe('Upper bound. Default: no limit.'),
    min: z.int().min(1).max(10_000).optional().describe('Lower bound. Default: 1.'),
  })
  .refine(({ min, max }) => min === undefined || max === undefined || min <= max, {
    path: ['min'],
    error: 'must not be above max',
  })

/** Flow control: options that limit when letters run. */
const flowControlShape = {
  breaker: z
    .union([z.literal(false), breaker])
    .optional()
    .describe('Circuit breaker: when letters wait instead of running. false: never.'),
  budget: budget.optional().describe('Rate limit for the service that the handler calls.'),
  concurrency: z
    .union([z.literal(false), concurrency])
    .optional()
    .describe(
      'Adaptive concurrency: fewer letters run at the same time while runs fail. false: only maxConcurrent applies.',
    ),
}

const retention = z.strictObject({
  archiveAfterMs: durationMs
    .optional()
    .describe(
      'How long after it settled a resolved or exhausted letter is archived. Default: never.',
    ),
  removeAfterMs: durationMs
    .optional()
    .describe('How long after that an archived letter is removed. Default: never.'),
})

const ruleConditions = 'must have at least one of errorName, code, status and message'

/**
 * Strict and not empty: an unknown key would be ignored, and a rule without conditions matches
 * every failure.
 */
const ruleMatch = z
  .strictObject({
    errorName: z.string().min(1).optional(),
    code: z.string().min(1).optional(),
    status: z.int().optional(),
    message: z.union([z.string().min(1), z.instanceof(RegExp)]).optional(),
  })
  .refine((when) => Object.values(when).some((value) => value !== undefined), ruleConditions)

const maxRetries = z.int().min(0).max(1000).optional()

const maxRetriesByCategory = z.strictObject(
  Object.fromEntries(
    categories.map((category) => [
      category,
      maxRetries.describe(
        `Maximum retries after a failure of category ${category}. Default: maxRetries.`,
      ),
    ]),
  ) as Record<ErrorCategory, typeof maxRetries>,
)

/** The values of a rule are stored in letters, so each must be valid in a letter. */
const rule = z.strictObject({
  name: z.string().min(1),
  when: z.union(
    [
      functionSchema<(failure: Failure, thrown: unknown) => boolean>(),
      ruleMatch,
      z.array(ruleMatch).min(1),
    ],
    `${ruleConditions}, or be a function`,
  ),
  category: z.enum(categories),
  severity: z.enum(severities).optional(),
  recoverability: z.enum(recoverabilities).optional(),
  detail: z.string().optional(),
  hint: z.string().optional(),
  backoff: retryPolicy.optional(),
  maxRetries,
  priority: z.enum(priorities).optional(),
})

/** The options of one queue. */
export const policyShape = {
  maxRetries: maxRetries.describe('Maximum number of retries after the first run.'),
  maxRetriesByCategory: maxRetriesByCategory
    .optional()
    .describe('Limits by failure category, in place of maxRetries.'),
  retryForMs: positiveMs
    .optional()
    .describe(
      'Limits retries by time instead of by number: since the capture, or since a person retried the letter.',
    ),
  backoff: retryPolicy
    .optional()
    .describe('Delay between retries. Default: depends on the category of each failure.'),
  priority: z.enum(priorities).optional().describe('Critical letters run first.'),
  timeoutMs: positiveMs
    .optional()
    .describe('Maximum run time of a handler; then its signal aborts.'),
  retention: retention
    .optional()
    .describe(
      'When resolved and exhausted letters are archived, and when archived letters are removed.',
    ),
  dependency: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'Name of the service that the handler calls. Queues with the same name share its limits.',
    ),
  redact: redactOption(z.union([z.string().min(1), z.instanceof(RegExp)])),
  subject: subjectOption,
  ...repairShape,
  ...flowControlShape,
}

/** All options of a queue. The reference page is generated from these descriptions. */
export const optionsShape = {
  ...policyShape,
  queues: z
    .record(z.string(), z.strictObject(policyShape))
    .optional()
    .describe('Options by queue. They override the options for all queues.'),
  dependencies: z
    .record(z.string(), z.strictObject(flowControlShape))
    .optional()
    .describe('Limits by dependency, shared by all queues that name it as their dependency.'),
  maxItems: z
    .int()
    .min(1)
    .optional()
    .describe('Maximum number of stored letters, excluding archived ones.'),
  overflow: z
    .enum(['reject', 'evict-resolved'])
    .optional()
    .describe(
      'What happens at maxItems: reject new letters, or remove the letters that were resolved first.',
    ),
  maxPayloadBytes: z
    .int()
    .min(1)
    .max(1024 ** 3)
    .optional()
    .describe('Larger payloads are rejected with TOO_LARGE.'),
  search: z
    .string()
    .min(1)
    .optional()
    .describe(
      'URL of an index that follows the store, for full-text search, such as opensearch://localhost:9200.',
    ),
  encryption,
  capture: z
    .boolean()
    .optional()
    .describe(
      'False: failures are not stored. Guarded calls throw as before, and enqueue rejects with CAPTURE_DISABLED. Default: true.',
    ),
  redeliver: z
    .boolean()
    .optional()
    .describe('False: start() redelivers nothing in this process. Default: true.'),
  onStoreDown: z
    .enum(['spool', 'fail', 'memory'])
    .optional()
    .describe(
      'Where new letters go while the store is unreachable. Default: spool for a durable store given by URL, otherwise fail.',
    ),
  spoolPath: z.string().min(1).optional().describe('Folder of the spool, on a local disk.'),
  spoolMaxBytes: z
    .int()
    .min(1)
    .optional()
    .describe('Maximum size of the spool; further letters are rejected.'),
  spoolAfterMs: positiveMs
    .optional()
    .describe('How long a write to the store may take before its letters go to the spool.'),
  maxConcurrent: z
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe('Maximum number of handlers that run at the same time.'),
  claimBatch: z
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe('Maximum number of letters per claim, within maxConcurrent.'),
  leaseMs: z
    .number()
    .min(50)
    .max(86_400_000)
    .optional()
    .describe('A worker that does not renew its leases for this long loses its letters.'),
  pollMs: z
    .number()
    .min(1)
    .max(3_600_000)
    .optional()
    .describe('Poll interval for due letters of other processes.'),
  sweepMs: z
    .number()
    .min(10)
    .max(3_600_000)
    .optional()
    .describe('How often to archive, expire and clean up letters.'),
  graceMs: durationMs
    .optional()
    .describe('How long a handler may take to return after its signal aborted.'),
  unknownRetries: z
    .int()
    .min(0)
    .optional()
    .describe(
      'Retries of a failure that matches no rule, within maxRetries; then it waits for a review.',
    ),
  maxReplays: z
    .int()
    .min(0)
    .max(1000)
    .optional()
    .describe('How often a letter may be replayed in total; then it is parked.'),
  approval: z
    .strictObject({
      above: z.int().min(0).describe('The largest number of letters that needs no approval.'),
    })
    .optional()
    .describe('Bulk actions on more letters need a second person. Default: none does.'),
  mailboxes: z
    .union(
      [resolver, z.record(mailboxName, z.union([z.string().min(1), aMailbox], mailboxForms))],
      'must be an object of mailboxes by name, or an object with resolve()',
    )
    .optional(),
  rules: z
    .array(rule)
    .optional()
    .describe('Classifier rules that are tried before the built-in rules.'),
  templates: z
    .array(z.union([z.string().min(1), rule]))
    .optional()
    .describe(
      'Rules for common failure patterns, tried after rules: names of built-in templates, or rules.',
    ),
  fingerprints: z
    .array(fingerprintRule(z.union([z.string().min(1), z.instanceof(RegExp)])))
    .max(1000)
    .optional()
    .describe('Rules that give letters a fingerprint of your choice. The first match is used.'),
  alerts: z
    .union([z.literal(false), alertRulesSchema])
    .optional()
    .describe(
      'Alert rules, in place of the built-in ones (nearly full, many exhausted, retries fail, group regressed). false: no alerts.',
    ),
  alertEveryMs: z
    .number()
    .min(1000)
    .max(86_400_000)
    .optional()
    .describe('How often to evaluate the alert rules.'),
  ...notifyShape,
  backoffs: z
    .record(z.string(), functionSchema<(retry: number, failure: Failure) => number>())
    .optional(),
  transforms: z.record(z.string().min(1), functionSchema<Transform>()).optional(),
  observers: z.array(functionSchema<Observer>()).optional(),
  onStoreCall: functionSchema<(call: StoreCall) => void>().optional(),
  worker: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Name of this process in leases and history. Default: a random name.'),
  app: z
    .strictObject({
      name: z.string().min(1).max(200).optional().describe('Name of the application.'),
      version: z.string().min(1).max(200).optional().describe('Version of the application.'),
      host: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('Host that it runs on. Default: the host name.'),
    })
    .optional()
    .describe('The program that captures, as stored in letters next to its process id.'),
  clock: z
    .custom<Clock>((value) => typeof value === 'object' && value !== null, 'must be a Clock')
    .optional(),
}
