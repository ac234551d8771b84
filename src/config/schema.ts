import { z } from 'zod'
import { categories, recoverabilities, severities } from '../letter/letter.ts'
import { targetProblem } from '../targets/http.ts'
import { templates } from '../policy/templates.ts'
import {
  durationMs,
  mailboxName,
  optionsShape,
  policyShape,
  positiveMs,
} from '../options/schema.ts'

/** Options that are code: they are given where a queue is opened, and have no place in a file. */
const {
  backoffs: _backoffs,
  observers: _observers,
  clock: _clock,
  rules: rulesOption,
  backoff: backoffOption,
  maxRetries,
  templates: _templates,
  queues: queuesOption,
  mailboxes: _mailboxes,
  ...data
} = optionsShape

const jitter = z
  .union([z.enum(['none', 'full']), z.number().min(0).max(1)])
  .optional()
  .describe('none, full, or a share of the wait by which it varies. none unless said.')
const maxMs = durationMs.optional().describe('The longest wait. 1 h unless said.')
const kindOf = <Kind extends string>(kind: Kind) =>
  z.literal(kind).describe('never, immediate, fixed, linear or exponential.')

/** A backoff as data, or its word where the usual numbers will do. */
const backoff = z
  .union([
    z.enum(['never', 'immediate', 'linear', 'exponential']),
    z.discriminatedUnion('kind', [
      z.strictObject({ kind: kindOf('never') }),
      z.strictObject({ kind: kindOf('immediate') }),
      z.strictObject({
        kind: kindOf('fixed'),
        delayMs: durationMs.describe('fixed: the wait before every retry.'),
        jitter,
      }),
      z.strictObject({
        kind: kindOf('linear'),
        stepMs: durationMs
          .optional()
          .describe('linear: the first wait, and by how much each is longer. 5 min unless said.'),
        maxMs,
        jitter,
      }),
      z.strictObject({
        kind: kindOf('exponential'),
        baseMs: durationMs.optional().describe('exponential: the first wait. 1 min unless said.'),
        factor: z
          .number()
          .min(1)
          .max(1000)
          .optional()
          .describe('exponential: how many times longer each wait is. 2 unless said.'),
        maxMs,
        jitter,
      }),
    ]),
  ])
  .optional()
  .describe(backoffOption.description ?? '')

/** A pattern could be written such that a hostile message takes for ever to match, so that there are none here. */
const plainText = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => !/^\/.+\/[a-z]*$/s.test(text), {
    error: 'is a plain text in any case, not a pattern: rules with patterns are given in code',
  })

const match = z
  .strictObject({
    errorName: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('The name of the class of the error, or of one that it extends.'),
    code: z.string().min(1).max(100).optional().describe('Its code, as in ECONNRESET.'),
    status: z.int().min(100).max(599).optional().describe('Its HTTP status.'),
    message: plainText
      .optional()
      .describe('A plain text, in any case, in the first 1,024 characters of the message.'),
  })
  .meta({ minProperties: 1 })
  .refine((when) => Object.keys(when).length > 0, {
    error: 'must have at least one of errorName, code, status and message',
  })

const rule = z.strictObject({
  name: z.string().min(1).max(100).describe('What the rule is called where it decided.'),
  when: z
    .union([match, z.array(match).min(1).max(100)])
    .describe('All that must hold. Of a list of such maps, one is enough.'),
  category: z.enum(categories).describe('What such a failure is.'),
  severity: z
    .enum(severities)
    .optional()
    .describe('How bad it is. The usual of its category, unless said.'),
  recoverability: z
    .enum(recoverabilities)
    .optional()
    .describe('Whether trying again can help. The usual of its category, unless said.'),
  detail: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('What kind of failure within its category.'),
  hint: z.string().min(1).max(1000).optional().describe('What a person can do about it.'),
  backoff: backoff.describe('How letters that fail this way wait.'),
  maxRetries: maxRetries.describe('How often they are tried.'),
  priority: data.priority.describe('How urgent they are.'),
})

/** Where a secret is read from. It never stands in the file itself. */
const secret = z.union([
  z.strictObject({
    env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
      .describe('The name of an environment variable.'),
  }),
  z.strictObject({ file: z.string().min(1).describe('The path of a file.') }),
])

const http = z
  .strictObject({
    url: z
      .string()
      .min(1)
      .meta({ description: 'Where letters are posted to, http or https.', format: 'uri' }),
    secret: secret.optional().meta({
      description: 'What requests are signed with: { env: NAME } or { file: PATH }.',
      writeOnly: true,
    }),
    timeoutMs: positiveMs
      .optional()
      .describe('How long an answer may take, within the timeoutMs of the queue.'),
    headers: z
      .record(z.string(), z.union([z.string(), secret]))
      .optional()
      .meta({
        description: 'Further headers: a text, or { env: NAME } or { file: PATH }.',
        writeOnly: true,
      }),
    private: z
      .boolean()
      .optional()
      .describe('Whether the address may be a private one or of this machine.'),
  })
  .superRefine(({ url, headers = {}, private: inside = false }, context) => {
    // Values that are secrets are looked at once they are known.
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
  .refine(([program]) => program !== '', { error: 'must begin with the program to run' })

const command = z.union([
  words,
  z.strictObject({
    run: words.describe('The program and its arguments. No shell reads them.'),
    inheritEnv: z
      .union([z.boolean(), z.array(z.string().min(1))])
      .optional()
      .describe('Whether the command gets the whole environment of the worker, or which of it.'),
  }),
])

/** A URL may hold a password, so that it may come from elsewhere. */
const mailboxUrl = z.union([z.string().min(1), secret]).meta({
  description: 'As in redis://localhost#requests: a string, or { env: NAME } or { file: PATH }.',
  writeOnly: true,
})
const mailbox = z.strictObject({ url: mailboxUrl })

const handler = z
  .strictObject({
    http: http.optional().describe('Posts the payload to a URL.'),
    command: command
      .optional()
      .describe('Runs a program with the payload on its standard input: its words, or a map.'),
    mailbox: mailbox.optional().describe('Sends the payload to a mailbox of any broker.'),
  })
  .meta({ minProperties: 1, maxProperties: 1 })
  .refine((given) => Object.keys(given).length === 1, {
    error: 'must have exactly one of http, command and mailbox',
    // A key that is not known is told as that.
    when: ({ issues }) => issues.length === 0,
  })

const url = z
  .string()
  .min(1)
  .refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text), {
    error: 'must begin with https:// or http://',
  })
  .meta({ format: 'uri' })
const hidden = (description: string) => secret.meta({ description, writeOnly: true })

const notify = z.strictObject({
  webhook: z
    .strictObject({
      url: url.describe('Where alerts are posted to.'),
      secret: hidden('What requests are signed with: { env: NAME } or { file: PATH }.').optional(),
    })
    .optional()
    .describe('Posts each alert as JSON.'),
  slack: z
    .strictObject({ url: hidden('The incoming webhook: { env: NAME } or { file: PATH }.') })
    .optional()
    .describe('Writes each alert to a channel of Slack.'),
  pagerduty: z
    .strictObject({
      routingKey: hidden('Of the integration: { env: NAME } or { file: PATH }.'),
      url: url.optional().describe('Where events go, when it is not to PagerDuty itself.'),
    })
    .optional()
    .describe('Opens an incident for each alert, and resolves it when that is cleared.'),
})

/** The settings of an older design, under its names and within its bounds. */
const workflowShape = {
  dlq_enabled: z
    .boolean()
    .optional()
    .describe('Whether failures are kept and retried. True also brings the defaults named here.'),
  dlq_max_size: z.int().min(100).max(100_000).optional().describe('maxItems by another name.'),
  dlq_default_retry_policy: z
    .enum(['never', 'linear', 'exponential', 'immediate'])
    .optional()
    .describe('backoff by another name.'),
  dlq_default_max_retries: z
    .int()
    .min(0)
    .max(10)
    .optional()
    .describe('maxRetries by another name.'),
  dlq_retry_processor_enabled: z
    .boolean()
    .optional()
    .describe('Whether redrive work redelivers anything.'),
  dlq_retry_interval_seconds: z
    .int()
    .min(10)
    .max(3600)
    .optional()
    .describe('pollMs by another name, in seconds.'),
}

/** The stores that there are. Which of them a worker can use is found out when it starts. */
const storeUrl = /^(memory|sqlite|postgres(ql)?|rediss?|opensearchs?):/i

/** Everything that a file, the environment and flags can say. This one schema checks it, documents it and is published. */
export const configSchema = z.strictObject({
  store: z
    .string()
    .min(1)
    // One that is empty is told as such.
    .refine((url) => url === '' || storeUrl.test(url), {
      error: 'must begin with sqlite:, postgres:, redis: or opensearch:, as in sqlite:redrive.db',
    })
    .optional()
    .meta({ description: 'Where the letters are kept, as in sqlite:redrive.db.', format: 'uri' }),
  handlers: z
    .record(z.string().regex(/^\P{Cc}{1,200}$/u), handler)
    .optional()
    .describe('How redrive work runs the letters of each queue.'),
  notify: notify.optional().describe('Where redrive work sends alerts to.'),
  maxRetries,
  backoff,
  ...data,
  search: data.search.meta({ description: data.search.description ?? '', format: 'uri' }),
  mailboxes: z
    .record(mailboxName, mailboxUrl)
    .optional()
    .describe('Mailboxes that letters are replayed to, by the name that their letters have.'),
  queues: z
    .record(z.string(), z.strictObject({ ...policyShape, backoff }))
    .optional()
    .describe(queuesOption.description ?? ''),
  rules: z
    .array(rule)
    .max(1000)
    .optional()
    .describe(rulesOption.description ?? ''),
  templates: z
    .array(z.enum(templates.map(({ name }) => name)))
    .max(1000)
    .optional()
    .describe('Built-in rules for common failure patterns, by name, after rules.'),
  ...workflowShape,
})

export type ConfigData = z.infer<typeof configSchema>
