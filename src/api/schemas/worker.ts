import { z } from 'zod'
import { timestamp } from './filter.ts'
import { loopStatus } from './mailbox.ts'
import { limiterStatus } from './queue.ts'

const count = z.int().nonnegative()

/** A process that uses the store. Those of an older version report only their queues. */
export const workerView = z
  .strictObject({
    id: z.string(),
    kind: z
      .enum(['server', 'worker', 'program'])
      .exactOptional()
      .describe('redrive serve, redrive work, or another program with the library.'),
    host: z.string().exactOptional(),
    pid: count.exactOptional(),
    version: z.string().exactOptional().describe('Of Redrive.'),
    startedAt: timestamp.exactOptional(),
    seenAt: timestamp.describe('The last heartbeat, by the clock of the process.'),
    queues: z.array(z.string()).describe('Queues that it has handlers for.'),
    paused: z.array(z.string()).describe('Those of them that are paused.'),
    running: count.exactOptional().describe('Number of handlers that run.'),
    slots: count.exactOptional().describe('Number of handlers that may run at once.'),
    limiters: z
      .array(limiterStatus)
      .exactOptional()
      .describe('Breakers and limits as the process sees them, at most 200.'),
    loops: z
      .array(loopStatus)
      .exactOptional()
      .describe('Loops on mailboxes, at most 200. Shown only to callers without a scope.'),
  })
  .meta({ id: 'Worker' })
export type WorkerView = z.infer<typeof workerView>
