import { z } from 'zod'

/** The body of every error response (RFC 9457, application/problem+json). */
export const problemSchema = z
  .strictObject({
    /** Names the kind of the problem: the page of the error codes, with the code as fragment. */
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    /** A code of the error table. */
    code: z.string(),
    /** Whether the same request can succeed later. */
    retry: z.boolean(),
    /** The `x-request-id` of the response. The log of the server has it, too. */
    requestId: z.string().exactOptional(),
  })
  .meta({ id: 'Problem' })
export type Problem = z.infer<typeof problemSchema>

export const problemType = 'application/problem+json'

/** An error response of the server. */
export class ProblemError extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'ProblemError'
    this.problem = problem
  }
}
