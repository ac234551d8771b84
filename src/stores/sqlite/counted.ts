import type { Cell } from '../rows/codes.ts'
import { at, type SqlValue } from '../rows/columns.ts'

/** What a letter is counted by. */
export interface Counted extends Cell {
  fingerprint: string
  /** Distinct. */
  tags: readonly string[]
  retries: number
  backoffMs: number
}

export function countedOf(queue: number, row: readonly SqlValue[]): Counted {
  return {
    queue,
    state: row[at.state] as number,
    priority: row[at.priority] as number,
    category: row[at.category] as number,
    policy: row[at.policy] as number,
    fingerprint: row[at.fingerprint] as string,
    tags: parseTags(row[at.tags]!),
    retries: row[at.retries] as number,
    backoffMs: row[at.backoff_ms] as number,
  }
}

/** The distinct tags in a column. None: the column is empty or unreadable. */
export function parseTags(column: SqlValue): string[] {
  if (column === null) return []
  try {
    const tags: unknown = JSON.parse(column as string)
    return Array.isArray(tags) ? [...new Set(tags as string[])] : []
  } catch {
    return []
  }
}
