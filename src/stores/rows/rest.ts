import type { Rest } from './pack.ts'
import type { Row } from './row.ts'

/** Tags as they count: each once. */
export function tagsOf(row: Row): string[] {
  if (row.tagged === 0) return []
  const tags = restOf(row)?.tags
  return Array.isArray(tags) ? [...new Set(tags)] : []
}

/** The fields without a column, undefined when they cannot be read. */
export function restOf(row: Row): Rest | undefined {
  try {
    return JSON.parse(row.rest) as Rest
  } catch {
    return undefined
  }
}

/** How `rest` begins once the payload was edited, and `origin` when the first entry of the history is in it. */
const editedMark = '{"payload":'
const enteredMark = '{"entry":'

/** Whether the payload was edited, so that its bytes are kept apart from the captured ones. */
export function isEdited(row: Row): boolean {
  return row.rest.startsWith(editedMark)
}

/** Whether the history goes on beyond what is in the origin. */
export function hasLaterEntries(row: Row, origin: string): boolean {
  return row.entries - row.omitted > (origin.startsWith(enteredMark) ? 1 : 0)
}
