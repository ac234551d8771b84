import { z } from 'zod'
import { timestamp } from './filter.ts'

const count = z.int().nonnegative()
const text = z.string().min(1).max(1000)

/** Which dead records of a node. All given fields must match. */
export const replayFilter = z.strictObject({
  errorTypes: z.array(text).min(1).max(100).optional().describe('One of these, such as TIMEOUT.'),
  message: text.optional().describe('Part of the error message, in any case.'),
  since: timestamp.optional().describe('Failed at or after this time.'),
  until: timestamp.optional().describe('Failed before this time.'),
  streamId: text.optional(),
  key: text.optional().describe('The key of the original record.'),
})

/** What a replay did, or what a dry run would do. */
export const replayReport = z
  .strictObject({
    id: z.string().describe('The name of the replay.'),
    dryRun: z.boolean(),
    done: z
      .boolean()
      .describe('False: the call ended before the replay. The same request continues it.'),
    sent: count.describe('Records that were returned to their source.'),
    quarantined: count.describe('Records that were replayed too often, and were set aside.'),
    passed: count.describe('Records that do not match, or were replayed or erased before.'),
    left: count.describe('Records that cannot be returned unchanged.'),
    positions: z.array(count).describe('The checkpoint: the next offset of each partition.'),
    ends: z.array(count).describe('Where the replay ends. Empty: there is no dead letter topic.'),
    startedAt: timestamp,
  })
  .meta({ id: 'PipelineReplay' })

/** A node of a pipeline and its dead records. */
export const pipelineNode = z
  .strictObject({
    graph: z.string(),
    node: z.string(),
    name: z.string(),
    inputTopic: z.string(),
    dlqTopic: z.string(),
    quarantineTopic: z.string(),
    next: z
      .array(z.strictObject({ node: z.string(), topic: z.string() }))
      .describe('Where streams go after this node.'),
    depth: count.nullable().describe('Dead records. Null: unknown, and `problem` says why.'),
    oldestAt: timestamp.nullable().describe('When the oldest dead record died.'),
    quarantined: count.nullable(),
    problem: z.string().exactOptional(),
  })
  .meta({ id: 'PipelineNode' })
export type PipelineNodeView = z.infer<typeof pipelineNode>
