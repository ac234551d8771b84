import { z } from 'zod'
import { whyInvalidSchema } from '../check/payload-schema.ts'
import { replaySafeties } from '../letter/replay-safety.ts'

const jsonSchema = z.record(z.string(), z.unknown()).superRefine((schema, issues) => {
  const why = whyInvalidSchema(schema)
  if (why !== undefined) issues.addIssue(`must be a JSON Schema: ${why}`)
})

/** The longest wait for the confirmation of a replay. */
const maxConfirmMs = 30 * 86_400_000

/** Options of one queue that limit edits and replays. */
export const repairShape = {
  lockedHeaders: z
    .array(z.string().min(1).max(200))
    .max(1000)
    .optional()
    .describe('Headers that an edit must not change. Headers of Redrive are always locked.'),
  payloadSchema: jsonSchema
    .optional()
    .describe('JSON Schema that the payload must satisfy after an edit.'),
  replay: z
    .enum(replaySafeties)
    .optional()
    .describe(
      'Whether letters may be replayed: safe, idempotent-key (only with an idempotency-key header), or never.',
    ),
  confirmReplayMs: z
    .number()
    .min(0)
    .max(maxConfirmMs)
    .optional()
    .describe(
      'How long a replayed letter waits before it is resolved, to see whether its message dies again. 0: it does not wait.',
    ),
}
