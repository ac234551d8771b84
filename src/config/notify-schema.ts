import { z } from 'zod'
import { maxTimeoutMs } from '../observers/notify/target.ts'
import { httpUrl, targetName } from '../options/notify-shape.ts'
import { positiveMs } from '../options/schema.ts'
import { secret } from './secret-schema.ts'

const hidden = (description: string) => secret.meta({ description, writeOnly: true })

const targetKinds = ['webhook', 'slack', 'pagerduty', 'email'] as const
const notifyShape = {
  digestMs: z
    .number()
    .min(1000)
    .max(1_209_600_000)
    .optional()
    .describe('Collects alerts that are not critical for this time and sends one message.'),
  remindMs: z
    .number()
    .min(60_000)
    .max(1_209_600_000)
    .optional()
    .describe('Repeats an alert that is still raised and not acknowledged, at this interval.'),
  content: z
    .boolean()
    .optional()
    .describe('Whether messages contain titles of groups, which come from error messages.'),
}
const httpShape = {
  private: z
    .boolean()
    .optional()
    .describe('Whether the address may be private or local. Default: false.'),
  timeoutMs: positiveMs.max(maxTimeoutMs).optional().describe('Maximum time for a response.'),
}

const notifyTarget = z.strictObject({
  ...notifyShape,
  webhook: z
    .strictObject({
      url: httpUrl.describe('URL that alerts are posted to.'),
      secret: z
        .union([secret, z.array(secret).min(1).max(2)])
        .optional()
        .meta({
          description:
            'Signs requests (whsec_…): { env: NAME } or { file: PATH }, or an array of the new and the old one.',
          writeOnly: true,
        }),
      headers: z
        .record(z.string(), z.union([z.string(), secret]))
        .optional()
        .meta({
          description: 'Further headers: a string, { env: NAME } or { file: PATH }.',
          writeOnly: true,
        }),
      ...httpShape,
    })
    .optional()
    .describe('Posts each alert as JSON.'),
  slack: z
    .strictObject({
      url: hidden('URL of the incoming webhook: { env: NAME } or { file: PATH }.'),
      ...httpShape,
    })
    .optional()
    .describe('Posts each alert to a Slack channel.'),
  pagerduty: z
    .strictObject({
      routingKey: hidden('Routing key of the integration: { env: NAME } or { file: PATH }.'),
      url: httpUrl.optional().describe('URL of the events API. Default: that of PagerDuty.'),
      source: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('Source of the alerts in PagerDuty. Default: redrive.'),
      ...httpShape,
    })
    .optional()
    .describe('Opens an incident for each alert, and resolves it when the alert clears.'),
  email: z
    .strictObject({
      url: hidden('SMTP server with user and password: { env: NAME } or { file: PATH }.'),
      from: z.string().min(1).describe('Address of the sender.'),
      to: z.union([z.string().min(1), z.array(z.string().min(1)).min(1).max(50)]).meta({
        description: 'Addresses of the recipients.',
      }),
      plaintext: z
        .boolean()
        .optional()
        .describe('Whether a connection without TLS is allowed. Default: false.'),
      timeoutMs: positiveMs.max(maxTimeoutMs).optional().describe('Maximum time for a delivery.'),
    })
    .optional()
    .describe('Sends alerts by e-mail. Needs the package nodemailer.'),
})
/** Where alerts are sent, by name. */
export const notify = z.record(
  targetName,
  notifyTarget
    .refine((given) => targetKinds.filter((kind) => given[kind] !== undefined).length === 1, {
      error: 'must have exactly one of webhook, slack, pagerduty and email',
      when: ({ issues }) => issues.length === 0,
    })
    .refine(({ pagerduty, digestMs }) => !pagerduty || digestMs === undefined, {
      path: ['digestMs'],
      error: 'must be absent: each alert is an incident of its own',
    }),
)
