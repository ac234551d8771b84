import { z } from 'zod'
import { detectors } from '../policy/redaction/detectors.ts'
import { readPath } from '../policy/redaction/paths.ts'
import { compilePattern } from '../policy/redaction/pattern.ts'

/** The option `redact`. In files, a pattern is a string only. */
export const redactOption = <Pattern extends z.ZodType<string | RegExp>>(pattern: Pattern) =>
  z
    .strictObject({
      paths: z
        .array(z.string().max(1000).superRefine(problemOf(readPath)))
        .max(1000)
        .optional()
        .describe(
          'Values that are hidden, such as payload.card.number, headers.cookie or metadata.*.name. ** is any number of keys.',
        ),
      patterns: z
        .array(pattern.superRefine(problemOf<string | RegExp>(compilePattern)))
        .max(100)
        .optional()
        .describe(
          'Regular expressions whose matches are hidden in every text. Without lookaround and backreferences.',
        ),
      detectors: z
        .array(z.enum(detectors))
        .optional()
        .describe(`Secrets that are found by their form: ${detectors.join(', ')}. Default: all.`),
      atCapture: z
        .boolean()
        .optional()
        .describe(
          'True: error messages, metadata and notes are redacted before they are stored. Default: false, only what the server shows.',
        ),
      redactStored: z
        .boolean()
        .optional()
        .describe(
          'True: payloads and headers are redacted before they are stored, for good; such a letter cannot run. Default: false.',
        ),
    })
    .optional()
    .describe('What is hidden from callers of the server without the permission payload:reveal.')

export const subjectOption = z
  .string()
  .max(1000)
  .regex(/^(payload|metadata)(\.[^.]+)+$/, 'must be a path such as payload.user.id')
  .optional()
  .describe('Where the data subject of a letter is named, such as payload.user.id.')

function problemOf<T>(read: (value: T) => unknown): (value: T, issues: z.RefinementCtx) => void {
  return (value, issues) => {
    try {
      read(value)
    } catch (error) {
      issues.addIssue((error as Error).message)
    }
  }
}
