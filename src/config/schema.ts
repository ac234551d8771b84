import { z } from 'zod'
import { categories, recoverabilities, severities } from '../letter/letter.ts'
import { targetProblem } from '../targets/http.ts'
import { templates } from '../policy/templates.ts'
import { keyIdPattern } from '../check/encryption-keys.ts'
import { serverSchema } from './server-schema.ts'
import { fingerprintRule } from '../options/fingerprint-rule.ts'
import { redactOption } from '../options/redact-shape.ts'
import { notify } from './notify-schema.ts'
import { secret } from './secret-schema.ts'
import {
  durationMs,
  mailboxName,
  optionsShape,
  policyShape,
  positiveMs,
} from '../options/schema.ts'

/** Options that are code are given to DeadLetterQueue.open and left out here. */
const {
  backoffs: _backoffs,
  transforms: _transforms,
  onStoreCall: _onStoreCall,
  observers: _observers,
  clock: _clock,
  rules: rulesOption,
  fingerprints: fingerprintsOption,
  backoff: backoffOption,
  maxRetries,
  templates: _templates,
  queues: queuesOption,
  mailboxes: _mailboxes,
  notify: _notify,
  encryption: encryptionOption,
  redact: _redact,
  ...data
} = optionsShape

const jitter = z
  .union([z.enum(['none', 'full']), z.number().min(0).max(1)])
  .optional()
  .describe('none, full, or the share of the delay by which it varies. Default: none.')
const maxMs = durationMs.optional().describe('Maximum delay. Default: 1 h.')
const kindOf = <Kind extends string>(kind: Kind) =>
  z.literal(kind).describe('never, immediate, fixed, linear or exponential.')

/** A backoff as an object, or its kind alone for the default numbers. */
const backoff = z
  .union([
    z.enum(['never', 'immediate', 'linear', 'exponential']),
    z.discriminatedUnion('kind', [
      z.strictObject({ kind: kindOf('never') }),
      z.strictObject({ kind: kindOf('immediate') }),
      z.strictObject({
        kind: kindOf('fixed'),
        delayMs: durationMs.describe('fixed: the delay before every retry.'),
        jitter,
      }),
      z.strictObject({
        kind: kindOf('linear'),
        stepMs: durationMs
          .optional()
          .describe(
            'linear: the first delay, and the increase of each further one. Default: 5 min.',
          ),
        maxMs,
        jitter,
      }),
      z.strictObject({
        kind: kindOf('exponential'),
        baseMs: durationMs.optional().describe('exponential: the first delay. Default: 1 min.'),
        factor: z
          .number()
          .min(1)
          .max(1000)
          .optional()
          .describe('exponential: the factor between one delay and the next. Default: 2.'),
        maxMs,
        jitter,
      }),
    ]),
  ])
  .optional()
  .describe(backoffOption.description ?? '')

const redact = redactOption(z.string().min(1))

/** Patterns are not allowed: a hostile message could make a regular expression take for ever. */
const substring = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => !/^\/.+\/[a-z]*$/s.test(text), {
    error: 'is matched as a plain string, not a pattern: give rules with patterns in code',
  })

const match = z
  .strictObject({
    errorName: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('Class name of the error, or of a class that it extends.'),
    code: z.string().min(1).max(100).optional().describe('Code of the error, such as ECONNRESET.'),
    status: z.int().min(100).max(599).optional().describe('HTTP status of the error.'),
    message: substring
      .optional()
      .describe('A substring of the first 1,024 characters of the message, case-insensitive.'),
  })
  .meta({ minProperties: 1 })
  .refine((when) => Object.keys(when).length > 0, {
    error: 'must have at least one of errorName, code, status and message',
  })

const rule = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(100)
    .describe('Name of the rule, as shown in letters that it classified.'),
  when: z
    .union([match, z.array(match).min(1).max(100)])
    .describe('Conditions that must all hold. Of an array of such objects, one is enough.'),
  category: z.enum(categories).describe('Category of such a failure.'),
  severity: z
    .enum(severities)
    .optional()
    .describe('Severity of such a failure. Default: that of the category.'),
  recoverability: z
    .enum(recoverabilities)
    .optional()
    .describe('Whether a retry can help. Default: that of the category.'),
  detail: z.string().min(1).max(200).optional().describe('Kind of failure within its category.'),
  hint: z.string().min(1).max(1000).optional().describe('What a person can do about it.'),
  backoff: backoff.describe('Delay between retries of letters that fail this way.'),
  maxRetries: maxRetries.describe('Maximum number of retries of such letters.'),
  priority: data.priority.describe('Priority of such letters.'),
})

const http = z
  .strictObject({
    url: z
      .string()
      .min(1)
      .meta({ description: 'URL that letters are posted to, http or https.', format: 'uri' }),
    secret: secret.optional().meta({
      description: 'Key that requests are signed with: { env: NAME } or { file: PATH }.',
      writeOnly: true,
    }),
    timeoutMs: positiveMs
      .optional()
      .describe('Maximum time for a response, within the timeoutMs of the queue.'),
    headers: z
      .record(z.string(), z.union([z.string(), secret]))
      .optional()
      .meta({
        description: 'Further headers: a string, { env: NAME } or { file: PATH }.',
        writeOnly: true,
      }),
    private: z
      .boolean()
      .optional()
      .describe('Whether the address may be private or local. Default: false.'),
  })
  .superRefine(({ url, headers = {}, private: inside = false }, context) => {
    // Secret values are checked after they are read.
    const plain = Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : '',
    ])
    const target = { url, headers: Object.fromEntries(plain), private: inside }
    const problem = targetProblem(target)
    if (problem) context.addIssue({ code: 'custom', path: problem.path, message: problem.text })
  })

const words = z
  .array(z.string().regex(/^[^\0]*$/))
  .min(1)
  .max(1000)
  .refine(([program]) => program !== '', {
    error: 'must begin with the program to run, which is empty',
  })

const command = z.union([
  words,
  z.strictObject({
    run: words.describe('The program and its arguments. They are not passed through a shell.'),
    inheritEnv: z
      .union([z.boolean(), z.array(z.string().min(1))])
      .optional()
      .describe(
        'Environment variables of the worker that the command gets: true for all, or their names.',
      ),
  }),
])

/** A URL may contain a password, so it may be read from a variable or a file. */
const mailboxUrl = z.union([z.string().min(1), secret]).meta({
  description:
    'URL and name such as redis://localhost#requests: a string, { env: NAME } or { file: PATH }.',
  writeOnly: true,
})
const mailbox = z.strictObject({ url: mailboxUrl })

const handler = z
  .strictObject({
    http: http.optional().describe('Posts the payload to a URL.'),
    command: command
      .optional()
      .describe(
        'Runs a program with the payload on its standard input: an array of its arguments, or an object.',
      ),
    mailbox: mailbox.optional().describe('Sends the payload to a mailbox.'),
  })
  .meta({ minProperties: 1, maxProperties: 1 })
  .refine((given) => Object.keys(given).length === 1, {
    error: 'must have exactly one of http, command and mailbox',
    // An unknown key is reported as such.
    when: ({ issues }) => issues.length === 0,
  })

const encryption = z.strictObject({
  current: z
    .string()
    .regex(keyIdPattern)
    .describe('Id of the key that new letters are encrypted with.'),
  keys: z.record(z.string().regex(keyIdPattern), secret).meta({
    description:
      'Keys by id, each 32 bytes in base64: { env: NAME } or { file: PATH }. Remove a key when no letter uses it.',
    writeOnly: true,
  }),
})

/** Settings of an older design, with its names and bounds. */
const workflowShape = {
  dlq_enabled: z
    .boolean()
    .optional()
    .describe(
      'Whether failures are stored and retried. True also sets the defaults of the other dlq_ keys.',
    ),
  dlq_max_size: z.int().min(100).max(100_000).optional().describe('Alias of maxItems.'),
  dlq_default_retry_policy: z
    .enum(['never', 'linear', 'exponential', 'immediate'])
    .optional()
    .describe('Alias of backoff.'),
  dlq_default_max_retries: z.int().min(0).max(10).optional().describe('Alias of maxRetries.'),
  dlq_retry_processor_enabled: z.boolean().optional().describe('Alias of redeliver.'),
  dlq_retry_interval_seconds: z
    .int()
    .min(10)
    .max(3600)
    .optional()
    .describe('Alias of pollMs, in seconds.'),
}

/**
 * The schemes of all stores. Whether the client library is installed shows when the worker starts.
 */
const storeUrl = /^(memory|sqlite|postgres(ql)?|rediss?|opensearchs?):/i

/**
 * All keys of file, environment and flags. This schema validates them, documents them and is
 * published.
 */
export const configSchema = z.strictObject({
  store: z
    .string()
    .min(1)
    // An empty URL is reported as such.
    .refine((url) => url === '' || storeUrl.test(url), {
      error: 'must begin with sqlite:, postgres:, redis: or opensearch:, such as sqlite:redrive.db',
    })
    .optional()
    .meta({ description: 'URL of the store, such as sqlite:redrive.db.', format: 'uri' }),
  handlers: z
    .record(z.string().regex(/^\P{Cc}{1,200}$/u), handler)
    .optional()
    .describe('How redrive work runs the letters of each queue.'),
  notify: notify.optional().describe('Where redrive work and redrive serve send alerts, by name.'),
  maxRetries,
  backoff,
  redact,
  ...data,
  search: data.search.meta({ description: data.search.description ?? '', format: 'uri' }),
  mailboxes: z
    .record(mailboxName, mailboxUrl)
    .optional()
    .describe('Mailboxes that letters are replayed to, by the mailbox name in the letters.'),
  encryption: encryption.optional().describe(encryptionOption.description ?? ''),
  queues: z
    .record(z.string(), z.strictObject({ ...policyShape, backoff, redact }))
    .optional()
    .describe(queuesOption.description ?? ''),
  rules: z
    .array(rule)
    .max(1000)
    .optional()
    .describe(rulesOption.description ?? ''),
  fingerprints: z
    .array(fingerprintRule(substring))
    .max(1000)
    .optional()
    .describe(fingerprintsOption.description ?? ''),
  templates: z
    .array(z.enum(templates.map(({ name }) => name)))
    .max(1000)
    .optional()
    .describe('Names of built-in rules for common failure patterns, tried after rules.'),
  server: serverSchema.optional().describe('How redrive serve listens, and who may sign in.'),
  ...workflowShape,
})

export type ConfigData = z.infer<typeof configSchema>
