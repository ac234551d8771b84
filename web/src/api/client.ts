import { createClient, ProblemError, type Client } from 'redrive/api'

/** The server that this page comes from. The session cookie says who calls. */
export const api: Client = createClient({ url: '' })

/** Whether the caller has to sign in. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 401
}

/** Whether the caller may not do this. */
export function isForbidden(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 403
}

export function isMissing(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 404
}

/** Whether a letter or view has changed since it was read. */
export function isConflict(error: unknown): boolean {
  return (
    error instanceof ProblemError && (error.problem.status === 409 || error.problem.status === 412)
  )
}
