import { z } from 'zod'
import { endpoint } from '../endpoint.ts'
import { pipelineNode, replayFilter, replayReport } from '../schemas/pipeline.ts'

/** The nodes of a pipeline are not queues, so that no scope has them. */
const aboutPipelines = { tag: 'Pipelines', bounds: 'all' } as const

export const pipelineEndpoints = {
  getPipeline: endpoint({
    ...aboutPipelines,
    method: 'GET',
    path: '/api/pipeline',
    summary:
      'Returns the nodes of the pipeline of this server, how they are connected, and their dead records.',
    permission: 'letter:read',
    input: z.strictObject({}),
    output: z.strictObject({
      nodes: z.array(pipelineNode).describe('Empty: the server has no pipeline.'),
    }),
  }),
  replayNode: endpoint({
    ...aboutPipelines,
    method: 'POST',
    path: '/admin/dlq/{nodeId}/replay',
    summary:
      'Returns dead records of a node to their source topics. A call takes at most 20 seconds; if `done` is then false, the same request continues.',
    permission: 'letter:replay',
    input: z.strictObject({
      nodeId: z.string().min(1).max(200).describe('The id of the node, or its name.'),
      filter: replayFilter.optional(),
      limit: z.int().min(1).max(1_000_000_000).optional().describe('Maximum number of records.'),
      rate: z.number().positive().max(1_000_000).optional().describe('Records per second.'),
      to: z
        .string()
        .min(1)
        .max(249)
        .regex(/^[\w.-]+$/, 'must be a topic: letters, digits, dots, _ and -')
        .optional()
        .describe('A topic. Default: the source topic of each record.'),
      again: z.boolean().optional().describe('True: also records that were replayed before.'),
      id: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe(
          'A name for the replay. A replay that is done is not made again under its name. Default: derived from the request.',
        ),
      dryRun: z.boolean().optional().describe('True: counts only, and sends nothing.'),
    }),
    output: replayReport,
  }),
}
