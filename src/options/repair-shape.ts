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
  requireFix: z
    .boolean()
    .optional()
    .describe(
      'True: letters are replayed, or retried by a bulk action, only once their group is resolved in app.version or an earlier version.',
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

export interface FixOptions {
  requireFix?: boolean | undefined
  queues?: Readonly<Record<string, { requireFix?: boolean | undefined }>> | undefined
  app?: { version?: string | undefined } | undefined
}

/** The path of an option `requireFix` that is on although the version of the app is unknown. */
export function findFixWithoutVersion({
  requireFix,
  queues = {},
  app = {},
}: FixOptions): string[] | undefined {
  if (app.version !== undefined) return undefined
  if (requireFix) return ['requireFix']
  const queue = Object.keys(queues).find((name) => queues[name]?.requireFix)
  return queue === undefined ? undefined : ['queues', queue, 'requireFix']
}

export const needsVersion =
  'compares versions: set app.version to the version of this application, such as 1.4.0'
