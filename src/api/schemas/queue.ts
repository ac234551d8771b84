import { z } from 'zod'
import { categories, priorities, states } from '../../letter/letter.ts'
import { timestamp } from './filter.ts'
import { anyJson, letterView } from './letter.ts'
import { pausedQueue } from './statistics.ts'

const count = z.int().nonnegative()

export const queueSummary = z
  .strictObject({
    queue: z.string(),
    count: count.describe('Number of letters, without archived ones.'),
    states: z.record(z.enum(states), count),
    oldest: z
      .strictObject({ id: z.string(), at: timestamp })
      .exactOptional()
      .describe('The oldest letter that is neither resolved nor archived.'),
    paused: pausedQueue.exactOptional(),
  })
  .meta({ id: 'Queue' })

export const limiterStatus = z.strictObject({
  kind: z.enum(['queue', 'dependency']),
  name: z.string(),
  state: z.enum(['closed', 'open', 'half-open']).describe('State of the circuit breaker.'),
  until: timestamp
    .exactOptional()
    .describe('When an open breaker lets the next letter run as a probe.'),
  inFlight: count,
  limit: count.exactOptional().describe('Maximum number of letters that run at once.'),
  recovering: z.literal(true).exactOptional(),
})

const ms = z.number().nonnegative()

/** The options that are in force for a queue in the process of the server. */
const queuePolicy = z
  .strictObject({
    maxRetries: count,
    maxRetriesByCategory: z.partialRecord(z.enum(categories), count),
    retryForMs: ms.exactOptional(),
    backoff: letterView.shape.policy
      .exactOptional()
      .describe('Absent: it depends on the category of a failure.'),
    priority: z.enum(priorities),
    timeoutMs: ms,
    retention: z
      .strictObject({ archiveAfterMs: ms.exactOptional(), removeAfterMs: ms.exactOptional() })
      .exactOptional()
      .describe('Absent: letters are kept.'),
    dependency: z.string().exactOptional(),
    lockedHeaders: z.array(z.string()),
    payloadSchema: anyJson.exactOptional(),
    replay: z.enum(['safe', 'idempotent-key', 'never']),
    requireFix: z.boolean(),
    confirmReplayMs: ms,
    redact: z
      .strictObject({ atCapture: z.boolean(), redactStored: z.boolean() })
      .exactOptional()
      .describe(
        'When values are hidden. The rules are not shown: they may contain what they hide.',
      ),
    subject: z.string().exactOptional().describe('Where the data subject of a letter is named.'),
    breaker: z
      .union([
        z.literal(false),
        z.strictObject({
          failures: count,
          share: z.number(),
          openMs: ms,
          maxOpenMs: ms,
          probes: count,
          successes: count,
          patienceMs: ms,
        }),
      ])
      .describe('The circuit breaker. False: off.'),
    budget: z
      .strictObject({ perSecond: z.number(), burst: z.number().exactOptional() })
      .exactOptional()
      .describe('Absent: no rate limit.'),
    concurrency: z
      .union([z.literal(false), z.strictObject({ min: count, max: count.exactOptional() })])
      .describe('Adaptive concurrency. False: off.'),
  })
  .meta({ id: 'QueuePolicy' })

/** A queue with all that decides when its letters run, and what happened lately. */
export const queueDetail = queueSummary
  .extend({
    policy: queuePolicy,
    limiter: limiterStatus
      .exactOptional()
      .describe('The breaker and the limits now. Absent: no letter has run in this server.'),
    lastHour: z
      .strictObject({ captured: count, resolved: count, failed: count })
      .nullable()
      .describe('Events of the last hour, accurate to 5 minutes. Null: there are no samples yet.'),
  })
  .meta({ id: 'QueueDetail' })
