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
import { functionSchema } from '../check/issues.ts'
import type { Mailbox, MailboxResolver } from '../mailbox.ts'
import type { Observer } from '../observer.ts'
import { longestMs, parsePolicy } from '../policy/backoff.ts'

/** A length of time that may be none. */
export const durationMs = z.number().min(0).max(longestMs)
/** A length of time that is one. */
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
    .describe('Different letters that fail in a row before the breaker opens. 10 unless said.'),
  share: z
    .number()
    .gt(0)
    .max(1)
    .optional()
    .describe('Or, of the last twice as many letters, the share that failed. 0.8 unless said.'),
  openMs: positiveMs
    .optional()
    .describe('How long it stays open the first time. 30 s unless said.'),
  maxOpenMs: positiveMs
    .optional()
    .describe(
      'Each failed probe keeps it open for twice as long as before, up to this. 5 min unless said.',
    ),
  probes: z
    .int()
    .min(1)
    .optional()
    .describe('Letters that are tried at once while half-open. 1 unless said.'),
  successes: z
    .int()
    .min(1)
    .optional()
    .describe('Probes that have to succeed before it closes. 1 unless said.'),
  patienceMs: durationMs
    .optional()
    .describe(
      'For so long after a letter was first deferred, a run that an outage made fail is not counted. Default: a day.',
    ),
})

const budget = z.strictObject({
  perSecond: z
    .number()
    .gt(0)
    .max(1_000_000)
    .describe('Runs a second, in the long run. May be below 1.'),
  burst: z
    .number()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('Runs that may come at once after a quiet time. What a second brings, unless said.'),
})

const concurrency = z
  .strictObject({
    max: z
      .int()
      .min(1)
      .max(10_000)
      .optional()
      .describe('Never more than this. No limit unless said.'),
    min: z.int().min(1).max(10_000).optional().describe('Never fewer than this. 1 unless said.'),
  })
  .refine(({ min, max }) => min === undefined || max === undefined || min <= max, {
    path: ['min'],
    error: 'must not be above max',
  })

/** What holds letters back. */
const brakesShape = {
  breaker: z
    .union([z.literal(false), breaker])
    .optional()
    .describe('When letters wait instead of running into a wall; false for never.'),
  budget: budget.optional().describe('How much may be asked of what the handler calls.'),
  concurrency: z
    .union([z.literal(false), concurrency])
    .optional()
    .describe(
      'How many letters run at the same time, fewer while runs fail; false: only maxConcurrent counts.',
    ),
}

const retention = z.strictObject({
  archiveAfterMs: durationMs
    .optional()
    .describe(
      'How long a resolved or exhausted letter waits before it goes to the archive. For ever unless said.',
    ),
  removeAfterMs: durationMs
    .optional()
    .describe('How long an archived letter stays. For ever unless said.'),
})

const lookedAt = 'must have at least one of errorName, code, status and message'

/** A key that nobody knows would be passed over, and a rule that looks at nothing matches every failure. */
const ruleMatch = z
  .strictObject({
    errorName: z.string().min(1).optional(),
    code: z.string().min(1).optional(),
    status: z.int().optional(),
    message: z.union([z.string().min(1), z.instanceof(RegExp)]).optional(),
  })
  .refine((when) => Object.values(when).some((value) => value !== undefined), lookedAt)

const maxRetries = z.int().min(0).max(1000).optional()

const maxRetriesByCategory = z.strictObject(
  Object.fromEntries(
    categories.map((category) => [
      category,
      maxRetries.describe(`Retries after a failure that is ${category}. Default: maxRetries.`),
    ]),
  ) as Record<ErrorCategory, typeof maxRetries>,
)

/** What a rule says goes into letters, so it must be something that letters can have. */
const rule = z.strictObject({
  name: z.string().min(1),
  when: z.union(
    [
      functionSchema<(failure: Failure, thrown: unknown) => boolean>(),
      ruleMatch,
      z.array(ruleMatch).min(1),
    ],
    `${lookedAt}, or be a function`,
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

/** What can be set per queue. */
export const policyShape = {
  maxRetries: maxRetries.describe('Runs after the first one.'),
  maxRetriesByCategory: maxRetriesByCategory
    .optional()
    .describe('Limits for failures of single categories, in place of maxRetries.'),
  retryForMs: positiveMs
    .optional()
    .describe('Gives up by time instead of by number: so long after capture, or after a retry.'),
  backoff: retryPolicy
    .optional()
    .describe(
      'How long to wait between retries. Unless said, the category of each failure decides.',
    ),
  priority: z.enum(priorities).optional().describe('Critical letters go first.'),
  timeoutMs: positiveMs.optional().describe('How long a handler may run before its signal aborts.'),
  retention: retention
    .optional()
    .describe('When settled letters go to the archive, and when archived ones are removed.'),
  dependency: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('What its handler needs, by a name: queues that name the same share its brakes.'),
  ...brakesShape,
}

/** Everything that can be set where a queue is opened. What is said about each key here is the reference page. */
export const optionsShape = {
  ...policyShape,
  queues: z
    .record(z.string(), z.strictObject(policyShape))
    .optional()
    .describe('Policies of single queues, over the ones given for all.'),
  dependencies: z
    .record(z.string(), z.strictObject(brakesShape))
    .optional()
    .describe('The brakes of what queues need, for all queues that name it as their dependency.'),
  maxItems: z
    .int()
    .min(1)
    .optional()
    .describe('How many letters may be kept, archived ones aside.'),
  overflow: z
    .enum(['reject', 'evict-resolved'])
    .optional()
    .describe('What happens at maxItems: refuse, or remove the longest resolved letters.'),
  maxPayloadBytes: z
    .int()
    .min(1)
    .max(1024 ** 3)
    .optional()
    .describe('Larger payloads are refused with TOO_LARGE.'),
  search: z
    .string()
    .min(1)
    .optional()
    .describe(
      'The URL of an index that follows the store and finds letters by full text, as in opensearch://localhost:9200.',
    ),
  capture: z
    .boolean()
    .optional()
    .describe(
      'False: failures are not kept. Guarded calls throw as before, and enqueue rejects with CAPTURE_DISABLED. Default: true.',
    ),
  redeliver: z
    .boolean()
    .optional()
    .describe('False: start() redelivers nothing in this process. Default: true.'),
  onStoreDown: z
    .enum(['spool', 'fail', 'memory'])
    .optional()
    .describe(
      'What becomes of new letters while the store cannot be reached. For a durable store given by URL it is spool unless said.',
    ),
  spoolPath: z
    .string()
    .min(1)
    .optional()
    .describe('The folder in which they wait, on a local disk.'),
  spoolMaxBytes: z.int().min(1).optional().describe('How much may wait there; more is refused.'),
  spoolAfterMs: positiveMs
    .optional()
    .describe('How long the store may take to keep letters before they go to the spool.'),
  maxConcurrent: z
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe('Handlers that run at the same time.'),
  claimBatch: z
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe('Letters claimed at once, within maxConcurrent.'),
  leaseMs: z
    .number()
    .min(50)
    .max(86_400_000)
    .optional()
    .describe('A worker that is silent for so long has lost its letters.'),
  pollMs: z
    .number()
    .min(1)
    .max(3_600_000)
    .optional()
    .describe('How often to look for letters that other processes made due.'),
  sweepMs: z
    .number()
    .min(10)
    .max(3_600_000)
    .optional()
    .describe('How often to archive, expire and tidy.'),
  graceMs: durationMs
    .optional()
    .describe('How long a handler may take to obey its aborted signal.'),
  unknownRetries: z
    .int()
    .min(0)
    .optional()
    .describe(
      'Retries of a failure that no rule knows, within maxRetries, before a person is asked.',
    ),
  maxReplays: z
    .int()
    .min(0)
    .max(1000)
    .optional()
    .describe('How often a letter may be replayed, over all its lives; then it is parked.'),
  mailboxes: z
    .union(
      [resolver, z.record(mailboxName, z.union([z.string().min(1), aMailbox], mailboxForms))],
      'must be an object of mailboxes by name, or an object with resolve()',
    )
    .optional(),
  rules: z.array(rule).optional().describe('Classifier rules that go before the built-in ones.'),
  templates: z
    .array(z.union([z.string().min(1), rule]))
    .optional()
    .describe(
      'Rules for common failure patterns, after rules: the names of built-in ones, or your own.',
    ),
  alerts: z
    .union([z.literal(false), alertRulesSchema])
    .optional()
    .describe(
      'When to raise an alert, in place of the built-in rules: nearly full, many exhausted, retries fail; false for never.',
    ),
  alertEveryMs: z
    .number()
    .min(1000)
    .max(86_400_000)
    .optional()
    .describe('How often to look whether a rule for alerts is crossed.'),
  backoffs: z
    .record(z.string(), functionSchema<(retry: number, failure: Failure) => number>())
    .optional(),
  observers: z.array(functionSchema<Observer>()).optional(),
  worker: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('A name for this process in leases and history. Made up unless given.'),
  app: z
    .strictObject({
      name: z.string().min(1).max(200).optional().describe('The name of the application.'),
      version: z.string().min(1).max(200).optional().describe('The version of the application.'),
      host: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('Where it runs. Default: the host name of the machine.'),
    })
    .optional()
    .describe('What letters say about the program that captured them, besides its process id.'),
  clock: z
    .custom<Clock>((value) => typeof value === 'object' && value !== null, 'must be a Clock')
    .optional(),
}
