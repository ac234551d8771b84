import { z } from 'zod'
import { states } from '../../letter/letter.ts'
import { timestamp } from './filter.ts'
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
