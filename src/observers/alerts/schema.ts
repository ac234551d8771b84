import { z } from 'zod'
import { alertMetrics, breakerPrefix, type AlertRule } from '../../policy/alerts.ts'
import { longestMs } from '../../policy/backoff.ts'

const durationMs = z.number().min(0).max(longestMs)

const rule = z
  .strictObject({
    name: z
      .string()
      .regex(/^[^\p{C}]{1,100}$/u, 'must be 1 to 100 characters without control characters')
      .refine(
        (name) => !name.startsWith(breakerPrefix),
        `must not begin with "${breakerPrefix}", which is reserved for breakers`,
      )
      .describe('Name of the alert. Processes that share a store share the alert.'),
    when: z
      .strictObject({
        metric: z.enum(alertMetrics).describe('The metric.'),
        above: z.number().optional().describe('Raised when the metric is above this.'),
        below: z.number().optional().describe('Raised when the metric is below this.'),
      })
      .refine(
        ({ above, below }) => (above === undefined) !== (below === undefined),
        'must have either above or below',
      )
      .describe('The metric, and the threshold that it must cross.') as z.ZodType as z.ZodType<
      AlertRule['when']
    >,
    queue: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('Only this queue. Default: all queues together.'),
    forMs: durationMs
      .optional()
      .describe('How long the threshold must be crossed before the alert is raised. Default: 0.'),
    minRuns: z
      .int()
      .min(1)
      .optional()
      .describe('Minimum number of runs before a rate is evaluated. Default: 20.'),
    severity: z.enum(['warning', 'critical']).describe('Severity of the alert.'),
    hint: z.string().max(1000).optional().describe('What a person can do about it.'),
  })
  .refine(({ when, queue }) => when.metric !== 'utilisation' || queue === undefined, {
    path: ['queue'],
    message: 'must be absent: utilisation is measured over all queues',
  })

/** Alert rules. Names are unique: two rules of one name would overwrite each other's state. */
export const alertRulesSchema = z
  .array(rule)
  .max(1000)
  .refine(
    (rules) => new Set(rules.map(({ name }) => name)).size === rules.length,
    'must have different names',
  )
