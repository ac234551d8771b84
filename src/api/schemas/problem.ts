import { z } from 'zod'
import type { Problem } from '../problem.ts'

/** The body of every error response. */
export const problemSchema = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    retry: z.boolean(),
    requestId: z.string().exactOptional(),
  })
  .meta({ id: 'Problem' }) satisfies z.core.$ZodType<Problem>
