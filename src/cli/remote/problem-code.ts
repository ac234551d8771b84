import type { ProblemError } from '../../api/problem.ts'

/**
 * Whether an error is the answer of a server. It compares the name, because the class would load
 * the schemas of the API, which commands on a store do not need.
 */
export function isProblem(error: unknown): error is ProblemError {
  return error instanceof Error && error.name === 'ProblemError' && 'problem' in error
}

/** Whether the server answered that the letter or group does not exist. */
export function isNotFound(error: unknown): boolean {
  return isProblem(error) && ['LETTER_NOT_FOUND', 'GROUP_NOT_FOUND'].includes(error.problem.code)
}
