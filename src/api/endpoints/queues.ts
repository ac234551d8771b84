import { z } from 'zod'
import { endpoint } from '../endpoint.ts'
import { oneOrMore } from '../schemas/filter.ts'
import { pageOf } from '../schemas/letter.ts'
import { limiterStatus, queueDetail, queueSummary } from '../schemas/queue.ts'

const tag = 'Queues'
const name = z.string().min(1).max(1000)

export const queueEndpoints = {
  listQueues: endpoint({
    method: 'GET',
    path: '/api/queues',
    tag,
    summary:
      'Lists queues with their counts, by name. Counts of one tenant are made by reading its letters.',
    permission: 'letter:read',
    bounds: 'filter',
    input: z.strictObject({
      queue: oneOrMore(name).optional(),
      tenant: name.optional().describe('Counts only letters of this tenant.'),
      limit: z.int().min(1).max(1000).optional().describe('Default: 100.'),
      cursor: z.string().max(2000).optional().describe('The `cursor` of the page before.'),
    }),
    output: pageOf(queueSummary),
  }),
  getQueue: endpoint({
    method: 'GET',
    path: '/api/queues/{queue}',
    tag,
    summary:
      'Returns a queue with its counts, the policy in force, its limits, and the events of the last hour. A name without letters has counts of 0.',
    permission: 'letter:read',
    bounds: 'queue',
    input: z.strictObject({ queue: name }),
    output: queueDetail,
  }),
  getFlowControl: endpoint({
    method: 'GET',
    path: '/api/flow-control',
    tag,
    summary:
      'Returns breakers and limits of queues and dependencies in the process of the server. Dependencies are shown only to callers without a scope.',
    permission: 'letter:read',
    bounds: 'queues',
    input: z.strictObject({}),
    output: z.array(limiterStatus),
  }),
}
