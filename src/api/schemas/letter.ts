import { z } from 'zod'
import { letterSchema } from '../../letter/schema.ts'
import { states, type Json } from '../../letter/letter.ts'
import { timestamp } from './filter.ts'

/** Any JSON value. */
export const anyJson = z.custom<Json>(() => true)

const payloadFacts = letterSchema.shape.payload.omit({ bytes: true })

/** The bytes of a payload in the form that people can read best. Without one: they are hidden. */
const payloadView = payloadFacts.extend({
  json: anyJson.exactOptional().describe('The value, if the payload is JSON.'),
  text: z.string().exactOptional().describe('The text, if the payload is other UTF-8 text.'),
  base64: z.base64().exactOptional().describe('The bytes, if the payload is not text.'),
})
export type PayloadView = z.infer<typeof payloadView>

/** Says that a view is incomplete. */
export const contentHidden = z
  .literal(true)
  .exactOptional()
  .describe(
    'The caller may not read content: payloads, headers, metadata, error text and notes are left out.',
  )

/** A letter with its payload and its history. */
export const letterView = letterSchema
  .omit({ payload: true })
  .extend({ payload: payloadView, hidden: contentHidden })
  .meta({ id: 'Letter' })
export type LetterView = z.infer<typeof letterView>

const failureSummary = letterSchema.shape.failure
  .omit({ stack: true, causes: true })
  .extend({
    get causes() {
      return z.array(failureSummary)
    },
  })
  .meta({ id: 'FailureSummary' })

/** A letter of a list: without its history, the bytes of its payload and the stacks of failures. */
export const summaryView = letterSchema
  .omit({ payload: true, history: true })
  .extend({
    failure: failureSummary,
    firstFailure: failureSummary,
    payload: payloadFacts,
    hidden: contentHidden,
  })
  .meta({ id: 'LetterSummary' })
export type SummaryView = z.infer<typeof summaryView>

export function pageOf<T extends z.core.$ZodType>(
  item: T,
): z.ZodObject<{ items: z.ZodArray<T>; cursor: z.ZodExactOptional<z.ZodString> }> {
  return z.strictObject({
    items: z.array(item),
    cursor: z
      .string()
      .exactOptional()
      .describe('The `cursor` of the next page. Absent on the last page.'),
  })
}

export const lineageLetter = z.strictObject({
  id: z.string(),
  queue: z.string(),
  state: z.enum(states),
  replays: z.int(),
  deadLetteredAt: timestamp,
  settledAt: timestamp.exactOptional(),
  failure: z.string(),
})

/** A stored version of a payload. */
export const payloadVersion = payloadView.extend({
  by: z.string().exactOptional(),
  at: timestamp.exactOptional(),
})

const about = {
  contentType: z.strictObject({ before: z.string(), after: z.string() }),
  truncated: z.boolean().describe('There are more changes than the list has.'),
}
const bytes = z.strictObject({ size: z.int(), sha256: z.string() })

export const payloadDiff = z.discriminatedUnion('kind', [
  z.strictObject({ ...about, kind: z.literal('same') }),
  z.strictObject({
    ...about,
    kind: z.literal('json'),
    changes: z.array(
      z.strictObject({
        path: z.string().describe('A JSON Pointer.'),
        before: anyJson.exactOptional(),
        after: anyJson.exactOptional(),
      }),
    ),
  }),
  z.strictObject({
    ...about,
    kind: z.literal('text'),
    changes: z.array(
      z.strictObject({
        line: z.int(),
        before: z.array(z.string()),
        after: z.array(z.string()),
      }),
    ),
  }),
  z.strictObject({ ...about, kind: z.literal('bytes'), before: bytes, after: bytes }),
])
