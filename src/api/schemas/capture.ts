import { z } from 'zod'
import { priorities, states } from '../../letter/letter.ts'
import { problemSchema } from './problem.ts'
import { timestamp } from './filter.ts'
import { anyJson } from './letter.ts'

const name = z.string().min(1).max(1000)
const count = z.int().nonnegative()

/** An error of another process. */
export const errorInput = z
  .strictObject({
    name: z.string().max(1000).optional().describe('The class of the error. Default: Error.'),
    message: z.string().max(100_000),
    code: z.union([z.string().max(1000), z.number()]).optional(),
    status: z.int().min(100).max(599).optional().describe('An HTTP status.'),
    stack: z.string().max(100_000).optional(),
  })
  .describe('Why the work failed. It decides the category, the retries and the group.')

/** A failure that another program reports. */
export const captureInput = z.strictObject({
  queue: z.string().min(1).max(200).describe('The name that letters are handled and filtered by.'),
  json: anyJson.optional().describe('The payload, as a JSON value.'),
  text: z
    .string()
    .optional()
    .describe('The payload, as text with `contentType`. Default: text/plain.'),
  base64: z.base64().optional().describe('The payload, as bytes with `contentType`.'),
  contentType: z.string().min(1).max(200).optional(),
  error: errorInput,
  id: z.uuid().optional().describe('A UUID of the sender. The same id again adds no letter.'),
  dedupeKey: name
    .optional()
    .describe('While an open letter of the queue has this key, no other letter is added.'),
  lane: name.optional().describe('Letters of one lane run one at a time, in order.'),
  dependsOn: z.array(z.uuid()).max(1000).optional().describe('Letters that must succeed before.'),
  tenant: name.optional(),
  subject: name.optional().describe('The person or other data subject that it is about.'),
  tags: z.array(z.string().max(1000)).max(1000).optional(),
  metadata: z.record(z.string(), anyJson).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  priority: z.enum(priorities).optional(),
  maxRetries: count.optional(),
  traceparent: z.string().max(200).optional(),
  attempts: count.optional().describe('Number of runs so far. Default: 1.'),
  failedAt: timestamp.optional().describe('When the work first failed. Default: now.'),
  expiresAt: timestamp.optional(),
  method: z.string().max(200).optional().describe('Of the call that failed.'),
  endpoint: z.string().max(2000).optional().describe('Of the call that failed.'),
})
export type CaptureInput = z.output<typeof captureInput>

/** The letter that a failure is stored in. */
export const captured = z.strictObject({
  id: z.string(),
  queue: z.string(),
  state: z.enum(states),
  occurrences: z.int().describe('More than 1: the failure was added to a letter that existed.'),
})

/** The result of one line. */
export const capturedLine = z.strictObject({
  line: z.int().describe('The number of the line, from 1.'),
  ...captured.partial().shape,
  problem: problemSchema.optional().describe('Why the line was not stored.'),
})
