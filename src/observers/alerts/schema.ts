import { z } from 'zod'
import { alertMetrics, breakerPrefix, type AlertRule } from '../../policy/alerts.ts'
import { longestMs } from '../../policy/backoff.ts'

const durationMs = z.number().min(0).max(longestMs)

const rule = z
  .strictObject({
    name: z
      .string()
      .regex(/^[^\p{C}]{1,100}$/u, 'must be 1 to 100 characters without control characters')
      .refine((name) => !name.startsWith(breakerPrefix), 'is a name that breakers use')
      .describe('What the alert is called. Processes that share a store mean the same by it.'),
    when: z
      .strictObject({
        metric: z.enum(alertMetrics).describe('What is measured.'),
        above: z.number().optional().describe('Raised when it is more than this.'),
        below: z.number().optional().describe('Raised when it is less than this.'),
      })
      .refine(
        ({ above, below }) => (above === undefined) !== (below === undefined),
        'must have either above or below',
      )
      .describe(
        'The metric, and the threshold that it must cross.',
      ) as z.ZodType<unknown> as z.ZodType<AlertRule['when']>,
    queue: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('Only this queue. All together, unless said.'),
    forMs: durationMs.optional().describe('It must hold for so long. Not at all, unless said.'),
    minRuns: z
      .int()
      .min(1)
      .optional()
      .describe('A rate over fewer runs is not judged. 20 unless said.'),
    severity: z.enum(['warning', 'critical']).describe('How bad it is.'),
    hint: z.string().max(1000).optional().describe('What to do about it.'),
  })
  .refine(({ when, queue }) => when.metric !== 'utilisation' || queue === undefined, {
    path: ['queue'],
    message: 'utilisation is of all queues together',
  })

/** Rules as options give them. Two of one name would overwrite what stands of each other. */
export const alertRulesSchema = z
  .array(rule)
  .max(1000)
  .refine(
    (rules) => new Set(rules.map(({ name }) => name)).size === rules.length,
    'must have different names',
  )
