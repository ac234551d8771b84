import { z } from 'zod'
import { categories, priorities, reasons, states } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import { isTimestamp } from '../../letter/time.ts'

export const oneOrMore = <T extends z.core.$ZodType>(
  one: T,
): z.ZodUnion<readonly [T, z.ZodArray<T>]> => z.union([one, z.array(one).max(1000)])

const text = z.string().min(1).max(1000)
export const timestamp = z
  .string()
  .refine(isTimestamp, 'must be a timestamp such as 2026-01-01T00:00:00.000Z')
  .meta({ format: 'date-time' })
export const letterId = z.string().min(1).max(200).describe('The id of a letter.')

export const reveal = z
  .boolean()
  .optional()
  .describe(
    'True: also what redaction hides. It needs the permission payload:reveal, and is audited.',
  )

/** The fields of a filter. All given fields must match; a list matches any of its values. */
export const filterShape = {
  ids: z.array(letterId).max(1000).optional(),
  queue: oneOrMore(text).optional(),
  state: oneOrMore(z.enum(states)).optional().describe('Default: all but archived letters.'),
  category: oneOrMore(z.enum(categories)).optional(),
  priority: oneOrMore(z.enum(priorities)).optional(),
  policy: z
    .enum(['never', 'immediate', 'fixed', 'linear', 'exponential', 'custom'])
    .optional()
    .describe('The kind of backoff.'),
  reason: z.enum(reasons).optional().describe('Why the letter is parked or settled.'),
  group: oneOrMore(text).optional().describe('Fingerprints of groups.'),
  tag: text.optional(),
  lane: text.optional(),
  tenant: text.optional(),
  sourceId: text.optional().describe('The id of the work in its source.'),
  metadata: z
    .record(z.string().max(200), z.union([z.string(), z.number(), z.boolean(), z.null()]))
    .optional()
    .describe('Top-level metadata keys and their values. In a query: metadata.KEY=VALUE.'),
  text: text
    .optional()
    .describe('Part of the queue, or of the name, message or code of the last failure.'),
  since: timestamp.optional().describe('Dead-lettered at or after this time.'),
  until: timestamp.optional().describe('Dead-lettered before this time.'),
  settledBefore: timestamp.optional(),
  expiresBefore: timestamp.optional(),
  dependent: z.boolean().optional().describe('True: the letter still waits for its dependencies.'),
} satisfies { [K in keyof LetterFilter]-?: z.core.$ZodType<LetterFilter[K]> }

export const filterSchema = z.strictObject(filterShape)
export type FilterInput = z.infer<typeof filterSchema>

/** Fields of a filter whose result tells what payloads and errors contain. */
export const contentFields = [
  'text',
  'metadata',
  'sourceId',
  'tag',
] as const satisfies (keyof LetterFilter)[]
