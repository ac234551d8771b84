import { z } from 'zod'
import { alertMetrics, breakerPrefix } from '../policy/alerts.ts'

const durationMs = z
  .number()
  .min(0)
  .max(3650 * 86_400_000)

const rule = z
  .strictObject({
    name: z
      .string()
      .regex(/^[^\p{C}]{1,100}$/u, 'must be 1 to 100 characters without control characters')
      .refine((name) => !name.startsWith(breakerPrefix), 'is a name that breakers use'),
    when: z
      .strictObject({
        metric: z.enum(alertMetrics),
        above: z.number().optional(),
        below: z.number().optional(),
      })
      .refine(
        ({ above, below }) => (above === undefined) !== (below === undefined),
        'must have either above or below',
      ),
    queue: z.string().min(1).max(200).optional(),
    forMs: durationMs.optional(),
    minRuns: z.int().min(1).optional(),
    severity: z.enum(['warning', 'critical']),
    hint: z.string().max(1000).optional(),
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
