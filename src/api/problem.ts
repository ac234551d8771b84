/** The body of every error response (RFC 9457, application/problem+json). */
export type Problem = {
  /** Names the kind of the problem: the page of the error codes, with the code as fragment. */
  type: string
  title: string
  status: number
  detail: string
  /** A code of the error table. */
  code: string
  /** Whether the same request can succeed later. */
  retry: boolean
  /** The `x-request-id` of the response. The log of the server has it, too. */
  requestId?: string
}

export const problemType = 'application/problem+json'

/** Whether the body of a response is a problem of this server. Written by hand for browsers. */
export function isProblem(body: unknown): body is Problem {
  const { status, detail, code, retry } = (body ?? {}) as Partial<Record<keyof Problem, unknown>>
  return (
    typeof status === 'number' &&
    typeof detail === 'string' &&
    typeof code === 'string' &&
    typeof retry === 'boolean'
  )
}

/** An error response of the server. */
export class ProblemError extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'ProblemError'
    this.problem = problem
  }
}
