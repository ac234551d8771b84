import { statSync } from 'node:fs'

/**
 * Where the file was when it was opened. What is written to one that was removed is lost, and
 * SQLite does not notice.
 */
export interface FilePlace {
  /** In words, when the file is no longer there. */
  problem(): string | undefined
}

/** To be taken right after the file was opened. */
export function placeOf(path: string): FilePlace {
  const { ino } = statSync(path, { bigint: true })
  return {
    problem() {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false })
      if (found?.ino === ino) return undefined
      return `sqlite ${path}: the file was moved, removed or replaced while it was open: nothing more is written to it; put it back, or restart`
    },
  }
}
