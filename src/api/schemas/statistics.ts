import { z } from 'zod'
import { categories, priorities, severities, states } from '../../letter/letter.ts'
import { timestamp } from './filter.ts'

const count = z.int().nonnegative()
const counts = z.record(z.string(), count)

export const pausedQueue = z.strictObject({
  queue: z.string(),
  by: z.string(),
  reason: z.string(),
  at: timestamp,
})

/** Totals since the store was created. */
const lifetime = z.strictObject({
  captured: count,
  occurrences: count,
  retried: count,
  resolved: count,
  rescheduled: count,
  exhausted: count,
  parked: count,
  manuallyRetried: count,
  reviewed: count,
  replayed: count,
  archived: count,
  restored: count,
  removed: count,
  evicted: count,
})

export const statistics = z.strictObject({
  size: count.describe('Number of stored letters, without archived ones.'),
  maxItems: count.nullable().describe('Null: no limit.'),
  utilisation: z.number(),
  states: z.record(z.enum(states), count),
  categories: z.record(z.enum(categories), count),
  priorities: z.record(z.enum(priorities), count),
  policies: counts,
  queues: counts,
  severities: z.record(z.enum(severities), count).exactOptional(),
  sources: z
    .record(z.enum(['operation', 'mailbox', 'workflow', 'pipeline']), count)
    .exactOptional(),
  avgRetryCount: z.number(),
  lifetime,
  processor: z.strictObject({ running: z.boolean(), active: count, pollMs: z.number() }),
  pausedQueues: z.array(pausedQueue),
})
