import { z } from 'zod'
import type { Timestamp } from '../../letter/time.ts'
import { alertMetrics, type Alert } from '../../policy/alert-rule.ts'

/** A change of an alert. `reminder`: it is still raised. */
export interface AlertChange {
  /** Sorts by time. */
  id: string
  at: Timestamp
  state: 'raised' | 'cleared' | 'reminder'
  alert: Alert
}

export const alertSchema = z.object({
  name: z.string(),
  severity: z.enum(['warning', 'critical']),
  metric: z.enum([...alertMetrics, 'breaker-open']),
  value: z.number(),
  above: z.number().optional(),
  below: z.number().optional(),
  queue: z.string().optional(),
  group: z.string().optional(),
  title: z.string().optional(),
  summary: z.string(),
  hint: z.string().optional(),
  raisedAt: z.string(),
  clearedAt: z.string().optional(),
  acknowledged: z
    .object({ by: z.string(), at: z.string(), note: z.string().optional() })
    .optional(),
}) as z.ZodType as z.ZodType<Alert>

export const changeSchema = z.object({
  id: z.string(),
  at: z.string(),
  state: z.enum(['raised', 'cleared', 'reminder']),
  alert: alertSchema,
})
