import { RedriveError } from '../../errors.ts'

/** How often a step is begun anew because others got in between. Each time one of them got further, so this is ample. */
export const maxTries = 200

export function crowded(what: string): RedriveError {
  return new RedriveError(
    'STORE_UNAVAILABLE',
    `opensearch: too many write ${what} at once: try again`,
  )
}
