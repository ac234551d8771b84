import { z } from 'zod'
import { categories, priorities, recoverabilities } from '../../letter/letter.ts'
import { timestamp } from './filter.ts'
import { pausedQueue } from './statistics.ts'

const count = z.int().nonnegative()
const counts = z.record(z.string(), z.int())
const byPriority = z.record(z.enum(priorities), z.int())

export const alertView = z
  .strictObject({
    name: z.string(),
    severity: z.enum(['warning', 'critical']),
    metric: z.enum([
      'utilisation',
      'exhausted',
      'parked',
      'pending',
      'pending-age',
      'success-rate',
      'new-group',
      'regressed-group',
      'silent',
      'breaker-open',
    ]),
    value: z.number(),
    above: z.number().exactOptional(),
    below: z.number().exactOptional(),
    queue: z.string().exactOptional(),
    group: z.string().exactOptional().describe('The fingerprint of the group.'),
    title: z.string().exactOptional().describe('Title of the group. Needs payload:read.'),
    summary: z.string(),
    hint: z.string().exactOptional(),
    raisedAt: timestamp,
    clearedAt: timestamp.exactOptional(),
    acknowledged: z
      .strictObject({ by: z.string(), at: timestamp, note: z.string().exactOptional() })
      .exactOptional(),
  })
  .meta({ id: 'Alert' })

export const alertChangeView = z.strictObject({
  id: z.string(),
  at: timestamp,
  state: z.enum(['raised', 'cleared', 'reminder']),
  alert: alertView,
})

export const alertDeliveryView = z.strictObject({
  id: z.string().describe('Also the id of the message for the receiver.'),
  target: z.string(),
  state: z.enum(['waiting', 'sending', 'delivered', 'failed']),
  isDigest: z.boolean(),
  changes: z.array(alertChangeView),
  stillRaised: z.array(alertView).describe('Digest: alerts that were raised before.'),
  createdAt: timestamp,
  dueAt: timestamp.describe('The next attempt, or the end.'),
  attempts: count,
  answer: z.string().exactOptional().describe('What the receiver answered last.'),
})

export const targetTestView = z.strictObject({
  target: z.string(),
  kind: z.enum(['webhook', 'slack', 'pagerduty', 'email']),
  sent: z.boolean(),
  answer: z.string().describe('What the receiver answered.'),
})

const spool = z.strictObject({
  letters: count,
  bytes: count,
  oldestAt: timestamp.nullable(),
  drained: count,
  damaged: count,
  refused: count,
  unreadable: count,
})

export const healthView = z.strictObject({
  ok: z.boolean(),
  store: z.strictObject({
    ok: z.boolean(),
    checks: z.record(z.string(), z.string()),
    problems: z.array(z.string()),
  }),
  processor: z.strictObject({ running: z.boolean(), active: count }),
  spool: spool.exactOptional(),
  alerts: z.array(alertView),
  pausedQueues: z.array(pausedQueue),
  problems: z.array(z.string()),
})

export const metricsView = z.strictObject({
  totalEnqueued: z.int(),
  totalRetried: z.int(),
  totalSuccesses: z.int(),
  totalAbandoned: z.int(),
  totalManualReviews: z.int(),
  totalReplayed: z.int(),
  enqueuedByPriority: byPriority,
  enqueuedByType: counts,
  successByPriority: byPriority,
  successByType: counts,
  abandonedByPriority: byPriority,
  abandonedByType: counts,
  avgRetryCount: z.number(),
  avgBackoffMs: z.number(),
  maxRetryCount: z.int().nullable(),
  successRate: z.number(),
  abandonmentRate: z.number(),
  totalSettledRetries: z.int(),
  totalWaits: z.int(),
  totalBackoffMs: z.number(),
  partial: z.literal(true).exactOptional(),
  spool: spool.exactOptional(),
})

const side = z.strictObject({
  categories: z.partialRecord(z.enum(categories), count),
  recoverabilities: z.partialRecord(z.enum(recoverabilities), count),
  parked: count,
  retries: count,
  waitMs: z.number(),
})
const backtestCounts = {
  letters: count,
  changed: count.describe('Letters for which something differs.'),
  before: side,
  after: side,
  newlyParked: count,
  newlyRetried: count,
}

export const backtestReport = z.strictObject({
  ...backtestCounts,
  complete: z.boolean().describe('False: more letters match than were read.'),
  groups: z.array(z.strictObject({ group: z.string(), failure: z.string(), ...backtestCounts })),
  problems: z.array(z.string()).describe('Errors of the rules and backoffs.'),
})
