import { z } from 'zod'
import { endpoint } from '../endpoint.ts'
import { oneOrMore } from '../schemas/filter.ts'
import { anyJson } from '../schemas/letter.ts'
import { pausedQueue, statistics } from '../schemas/statistics.ts'

const tag = 'System'
const nothing = z.strictObject({})

export const systemEndpoints = {
  getLiveness: endpoint({
    method: 'GET',
    path: '/livez',
    tag,
    summary: 'Says that the process runs.',
    permission: 'public',
    bounds: 'none',
    input: nothing,
    output: z.strictObject({ ok: z.literal(true) }),
  }),
  getReadiness: endpoint({
    method: 'GET',
    path: '/readyz',
    tag,
    summary: 'Says whether the server can store letters. Status 503: it cannot.',
    permission: 'public',
    bounds: 'none',
    input: nothing,
    output: z.strictObject({ ok: z.literal(true) }),
  }),
  getStatistics: endpoint({
    method: 'GET',
    path: '/api/stats',
    tag,
    summary: 'Returns current counts, and totals since the store was created.',
    permission: 'letter:read',
    bounds: 'all',
    input: z.strictObject({
      by: oneOrMore(z.enum(['severity', 'source']))
        .optional()
        .describe('Further counts. No store maintains them: every letter may be read.'),
    }),
    output: statistics,
  }),
  getSettings: endpoint({
    method: 'GET',
    path: '/api/settings',
    tag,
    summary:
      'Returns every effective setting of this server and where it comes from. Secrets are masked.',
    permission: 'admin',
    bounds: 'all',
    input: nothing,
    output: z.array(
      z.strictObject({
        key: z.string(),
        value: anyJson,
        from: z.string().describe('`default`, a file with a line, a variable or a flag.'),
        secret: z.literal(true).exactOptional().describe('The value is masked.'),
      }),
    ),
  }),
  listPausedQueues: endpoint({
    method: 'GET',
    path: '/api/paused-queues',
    tag: 'Queues',
    summary: 'Lists the queues whose letters do not run until a person resumes them.',
    permission: 'letter:read',
    bounds: 'queues',
    input: nothing,
    output: z.array(pausedQueue),
  }),
  pauseQueue: endpoint({
    method: 'POST',
    path: '/api/queues/{queue}/pause',
    tag: 'Queues',
    summary: 'Pauses a queue for all workers.',
    permission: 'queue:pause',
    bounds: 'queue',
    input: z.strictObject({ queue: z.string(), reason: z.string().min(1).max(1000) }),
    output: pausedQueue,
  }),
  resumeQueue: endpoint({
    method: 'POST',
    path: '/api/queues/{queue}/resume',
    tag: 'Queues',
    summary: 'Lets a paused queue run again.',
    permission: 'queue:pause',
    bounds: 'queue',
    input: z.strictObject({ queue: z.string() }),
    output: z.strictObject({ resumed: z.boolean().describe('False: the queue was not paused.') }),
  }),
}
