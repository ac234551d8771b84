import { z } from 'zod'
import { bulkActionNames, bulkStates, outcomes } from '../../letter/bulk-action.ts'
import type { JsonPatch } from '../../letter/json-patch.ts'
import { priorities, states } from '../../letter/letter.ts'
import { filterSchema, timestamp } from './filter.ts'
import { contentHidden, payloadDiff } from './letter.ts'

const count = z.int().nonnegative()
const text = z.string().min(1).max(1000)
const tags = z.array(z.string().min(1).max(200)).min(1).max(100)

/** What an action needs besides letters. */
export const bulkInputShape = {
  at: timestamp.exactOptional().describe('Retry: when the letters become due. Default: at once.'),
  includeSuperseded: z
    .boolean()
    .exactOptional()
    .describe('Retry and replay: also letters of a lane in which a newer letter has succeeded.'),
  to: text.exactOptional().describe('Replay: the name of another mailbox than the source.'),
  priority: z.enum(priorities).exactOptional().describe('Priority: the new priority.'),
  addTags: tags.exactOptional(),
  removeTags: tags.exactOptional(),
  patch: z
    .custom<JsonPatch>(Array.isArray, 'must be an array of JSON Patch operations')
    .exactOptional()
    .describe('Edit: a JSON Patch (RFC 6902) of JSON payloads.'),
  transform: text.exactOptional().describe('Edit: the name of a function of the server.'),
}

export const timeWindow = z.strictObject({
  from: z.string().describe('HH:MM'),
  to: z.string().describe('HH:MM'),
  timeZone: z.string().exactOptional().describe('An IANA time zone. Default: UTC.'),
})

const canary = z.strictObject({
  first: z.int(),
  factor: z.number(),
  maxFailureShare: z.number(),
})
export const canaryInput = z.strictObject({
  first: canary.shape.first.exactOptional(),
  factor: canary.shape.factor.exactOptional(),
  maxFailureShare: canary.shape.maxFailureShare.exactOptional(),
})

/** One action on a fixed set of letters, planned first and then run. */
export const bulkActionView = z
  .strictObject({
    id: z.string(),
    action: z.enum(bulkActionNames),
    filter: filterSchema,
    input: z.strictObject({
      ...bulkInputShape,
      undoes: z.string().exactOptional().describe('Undo: the id of the edit.'),
    }),
    limits: z.strictObject({
      rate: z.number().exactOptional(),
      concurrency: z.int(),
      startAt: timestamp.exactOptional(),
      window: timeWindow.exactOptional(),
      canary: canary.exactOptional(),
    }),
    state: z.enum(bulkStates),
    by: z.string(),
    reason: z.string().exactOptional(),
    count: count.describe('Number of letters in the plan.'),
    states: z.partialRecord(z.enum(states), count),
    queues: z.record(z.string(), count),
    sample: z.array(
      z.strictObject({
        id: z.string(),
        queue: z.string(),
        state: z.enum(states),
        failure: z.string().describe('Name and message of the last failure.'),
      }),
    ),
    preview: z
      .array(
        z.strictObject({
          id: z.string(),
          diff: payloadDiff.exactOptional(),
          error: z.string().exactOptional(),
        }),
      )
      .exactOptional()
      .describe('Edit: what would change in the letters of the sample.'),
    ineligible: z
      .strictObject({
        count,
        reasons: z.record(z.string(), count),
        sample: z.array(z.strictObject({ id: z.string(), reason: z.string() })),
      })
      .describe('Letters that match the filter but cannot be part of the plan.'),
    progress: z.strictObject({
      pending: count,
      waiting: count,
      succeeded: count,
      failed: count,
      skipped: count,
      indeterminate: count,
    }),
    approval: z
      .strictObject({
        above: count,
        by: z.string().exactOptional(),
        at: timestamp.exactOptional(),
      })
      .exactOptional()
      .describe('The plan needs a second person, who has approved it if `by` is given.'),
    plannedAt: timestamp,
    expiresAt: timestamp.describe('The plan cannot be run after this.'),
    startedAt: timestamp.exactOptional(),
    endedAt: timestamp.exactOptional(),
    stopReason: z.string().exactOptional(),
    problem: z.string().exactOptional(),
    hidden: contentHidden,
  })
  .meta({ id: 'BulkAction' })
export type BulkActionView = z.infer<typeof bulkActionView>

/** What a bulk action did to one letter. */
export const bulkResultView = z.strictObject({
  id: z.string(),
  outcome: z.enum(outcomes),
  runs: count.exactOptional(),
  error: z.string().exactOptional().describe('Why the letter failed or was skipped.'),
  hidden: contentHidden,
})
export type BulkResultView = z.infer<typeof bulkResultView>
