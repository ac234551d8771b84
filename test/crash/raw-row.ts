import type { Action, Reason, State } from '../../src/letter/letter.ts'
import type { Dump } from './verify.ts'
import { shaOf } from './plan.ts'
import type { Stored } from './rules.ts'

/**
 * The state codes of the tables. Duplicated here on purpose: this reader must not use the product.
 */
const states: State[] = ['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived']

/** A letter as stored in tables, with its queue and the later entries of its history. */
export interface RawRow {
  id: string
  queue: string
  state: number
  reason: string | null
  epoch: number
  retries: number
  rest: string
  origin: string | null
  bytes: Uint8Array | null
  later: string[]
}

/** Builds the evidence from rows and the problems of their tables. */
export function dumpOfRows(rows: readonly RawRow[], problems: string[]): Dump {
  const byState: Dump['byState'] = {}
  const byQueue: Dump['byQueue'] = {}
  const letters = rows.map(storedOf)
  for (const { state } of letters) byState[state] = (byState[state] ?? 0) + 1
  for (const { queue } of rows) byQueue[queue] = (byQueue[queue] ?? 0) + 1
  return { letters, byState, byQueue, problems }
}

/** The first history entry is in `origin`, the others are in `later`. */
function storedOf(row: RawRow): Stored {
  const { entry } = JSON.parse(row.origin ?? '{}') as { entry?: { action: Action } }
  const entries = row.later.map((text) => JSON.parse(text) as { action: Action })
  const { maxRetries } = JSON.parse(row.rest) as { maxRetries: number }
  return {
    id: row.id,
    state: states[row.state]!,
    ...(row.reason === null ? {} : { reason: row.reason as Reason }),
    epoch: row.epoch,
    retries: row.retries,
    maxRetries,
    sha: row.bytes ? shaOf(row.bytes) : 'no body',
    actions: [...(entry ? [entry] : []), ...entries].map(({ action }) => action),
  }
}
