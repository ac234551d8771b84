import { z } from 'zod'
import { endpoint } from '../endpoint.ts'
import { mailboxView } from '../schemas/mailbox.ts'
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
  listMailboxes: endpoint({
    method: 'GET',
    path: '/api/mailboxes',
    tag: 'Workers',
    summary:
      'Lists the mailboxes that loops of live processes receive from, by name, with these loops.',
    permission: 'letter:read',
    bounds: 'all',
    input: z.strictObject({}),
    output: z.array(mailboxView),
  }),
}
