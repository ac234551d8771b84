import type { Rest } from './pack.ts'
import type { Row } from './row.ts'

/** The distinct tags. */
export function tagsOf(row: Row): string[] {
  if (row.tagged === 0) return []
  const tags = restOf(row)?.tags
  return Array.isArray(tags) ? [...new Set(tags)] : []
}

/** The fields without a column. Undefined: unreadable. */
export function restOf(row: Row): Rest | undefined {
  try {
    return JSON.parse(row.rest) as Rest
  } catch {
    return undefined
  }
}

/**
 * How `rest` starts once the payload was edited, and `origin` if it has the first history entry.
 */
const editedMark = '{"payload":'
const enteredMark = '{"entry":'

/** Whether the payload was edited: its bytes are then stored apart from the captured ones. */
export function isEdited(row: Row): boolean {
  return row.rest.startsWith(editedMark)
}

/** Whether the history has entries that are not in the origin. */
export function hasLaterEntries(row: Row, origin: string): boolean {
  return row.entries - row.omitted > (origin.startsWith(enteredMark) ? 1 : 0)
}
