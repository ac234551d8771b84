import { userInfo } from 'node:os'

/** The name of the person, for the history. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'operator' // The user has no name, as in some containers.
  }
}
