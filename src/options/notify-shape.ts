import { z } from 'zod'
import { hasMethods } from '../letter/reading.ts'
import type { Target } from '../observers/notify/target.ts'

/** Part of the ids of notifications. */
export const targetName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,49}$/i, 'must be 1 to 50 letters, digits, - or _')

const target = z.custom<Target>(
  (value) => hasMethods(value, 'send'),
  'must be made by webhook, slack, pagerduty or email',
)

/** An address of an HTTP server. */
export const httpUrl = z
  .string()
  .min(1)
  .max(2000)
  .refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text), {
    error: 'must begin with https:// or http://',
  })
  .meta({ format: 'uri' })

/** Options of notifications. */
export const notifyShape = {
  notify: z.record(targetName, target).optional(),
  baseUrl: httpUrl.optional().describe('URL of the server, for links in notifications.'),
}
