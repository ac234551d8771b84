import { z } from 'zod'
import {
  alertMetrics,
  breakerPrefix,
  countMetrics,
  type AlertRule,
} from '../../policy/alert-rule.ts'
import { longestMs } from '../../policy/backoff.ts'
import { rememberedDays } from '../../policy/silence.ts'

const durationMs = z.number().min(0).max(longestMs)

/** The longest time that a group counts as new. */
const dayMs = 86_400_000

const condition = z
  .strictObject({
    metric: z.enum(alertMetrics).describe('The metric.'),
    above: z.number().optional().describe('Raised when the metric is above this.'),
    below: z.number().optional().describe('Raised when the metric is below this.'),
    withinMs: z
      .number()
      .min(1000)
      .max(dayMs)
      .optional()
      .describe('new-group: only failures within this time after the first one. Default: 1 h.'),
    learnMs: z
      .number()
      .min(0)
      .max(rememberedDays * dayMs)
      .optional()
      .describe('silent: how long to observe a queue before it can be silent. Default: 7 days.'),
  })
  .superRefine(({ metric, above, below, withinMs, learnMs }, context) => {
    const reject = (message: string, ...path: string[]): void =>
      context.addIssue({ code: 'custom', message, path })
    const hasThreshold = (countMetrics as readonly string[]).includes(metric)
    if (hasThreshold && (above === undefined) === (below === undefined))
      reject('must have either above or below')
    if (!hasThreshold && below !== undefined) reject(`must be absent: ${metric} has none`, 'below')
    if (!hasThreshold && metric !== 'new-group' && above !== undefined)
      reject(`must be absent: ${metric} has none`, 'above')
    if (metric !== 'new-group' && withinMs !== undefined)
      reject('must be absent: only new-group has it', 'withinMs')
    if (metric !== 'silent' && learnMs !== undefined)
      reject('must be absent: only silent has it', 'learnMs')
  })
  .describe('The metric, and the threshold that it must cross.') as z.ZodType as z.ZodType<
  AlertRule['when']
>

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
    when: condition,
    queue: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('Only this queue. Default: all queues together; silent: each queue.'),
    forMs: durationMs
      .optional()
      .describe('How long the condition must hold. Default: 0; silent: 1 h.'),
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
