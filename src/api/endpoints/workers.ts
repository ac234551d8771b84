import { z } from 'zod'
import { endpoint } from '../endpoint.ts'
import { workerView } from '../schemas/worker.ts'

export const workerEndpoints = {
  listWorkers: endpoint({
    method: 'GET',
    path: '/api/workers',
    tag: 'Workers',
    summary:
      'Lists servers, workers and other programs that use the store now. A caller with a scope sees those that run its queues.',
    permission: 'letter:read',
    bounds: 'queues',
    input: z.strictObject({}),
    output: z.array(workerView),
  }),
}
