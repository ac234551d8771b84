import { RedriveError } from '../../errors.ts'

/**
 * Maximum attempts of a step under contention. Each conflict means that another process made
 * progress, so this is ample.
 */
export const maxAttempts = 200

export function contentionError(what: string): RedriveError {
  return new RedriveError(
    'STORE_UNAVAILABLE',
    `opensearch: too much contention while writing ${what}: try again`,
  )
}
