import { z } from 'zod'
import { unknownPlaceholder } from '../policy/fingerprint-rules.ts'

const fingerprintConditions = 'must have at least one of queue, name, code and message'

/** A rule for fingerprints. In files, `message` is a string only. */
export const fingerprintRule = <Message extends z.core.$ZodType>(message: Message) =>
  z.strictObject({
    match: z
      .strictObject({
        queue: z.string().min(1).max(200).optional().describe('Name of the queue.'),
        name: z.string().min(1).max(200).optional().describe('Name of the error.'),
        code: z.string().min(1).max(200).optional().describe('Code of the error.'),
        message: z
          .optional(message)
          .describe('A substring of the first 1,024 characters of the message, case-insensitive.'),
      })
      .meta({ minProperties: 1 })
      .refine((match) => Object.values(match).some((value) => value !== undefined), {
        error: fingerprintConditions,
      })
      .describe('Conditions that must all hold.'),
    fingerprint: z
      .string()
      .min(1)
      .max(200)
      .refine((text) => unknownPlaceholder(text) === undefined, {
        error: (issue) =>
          `has the unknown placeholder {${unknownPlaceholder(String(issue.input))}}: known are {queue}, {name}, {code} and {status}`,
      })
      .describe(
        'The fingerprint. {queue}, {name}, {code} and {status} are replaced by the values of the failure.',
      ),
  })
