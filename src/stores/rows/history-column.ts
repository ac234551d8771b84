import type { HistoryEntry } from '../../letter/letter.ts'
import { actionCode, actions, categories, categoryCode, stateCode, states } from './codes.ts'
import { decodeTime, encodeTime } from './times.ts'

/*
 * The column `history` has one line per entry, oldest first. A line is a JSON array with codes: it
 * is a third of the size of the entry, and a store can append one without reading the others.
 */

/** The last value is a note, or the end of the lease in milliseconds if the entry is a lapse. */
type Line = [
  atMs: number,
  actor: string,
  action: number,
  from: number | null,
  to: number | null,
  epoch?: number | null,
  failure?: [name: string, message: string, category: number] | null,
  note?: string | number | null,
]

export function encodeEntry(entry: HistoryEntry): string {
  const { at, actor, action, from, to, epoch, failure, note } = entry
  const line: Line = [
    encodeTime(at),
    actor,
    actionCode(action),
    from === null ? null : stateCode(from),
    to === null ? null : stateCode(to),
  ]
  if (note !== undefined) line.push(epoch ?? null, failureCells(failure), note)
  else if (failure) line.push(epoch ?? null, failureCells(failure))
  else if (epoch !== undefined) line.push(epoch)
  return JSON.stringify(line)
}

function failureCells(failure: HistoryEntry['failure']): Line[6] {
  return failure ? [failure.name, failure.message, categoryCode(failure.category)] : null
}

/** All entries. Undefined: the column is not readable. */
export function decodeHistory(column: string | null): HistoryEntry[] | undefined {
  if (column === null || column === '') return []
  try {
    const lines = JSON.parse(`[${column.replaceAll('\n', ',')}]`) as Line[]
    return lines.map(decodeLine)
  } catch {
    return undefined
  }
}

function decodeLine([atMs, actor, action, from, to, epoch, failure, note]: Line): HistoryEntry {
  const entry: HistoryEntry = {
    at: decodeTime(atMs),
    actor,
    action: actions[action] as HistoryEntry['action'],
    from: from === null ? null : states[from]!,
    to: to === null ? null : states[to]!,
  }
  if (epoch !== undefined && epoch !== null) entry.epoch = epoch
  if (failure) entry.failure = decodeFailure(failure)
  if (note !== undefined && note !== null) entry.note = decodeNote(note, actor)
  return entry
}

function decodeFailure([name, message, category]: NonNullable<Line[6]>): NonNullable<
  HistoryEntry['failure']
> {
  return { name, message, category: categories[category] ?? 'unknown' }
}

/** The note of `lapse` in `letter/moves.ts`, which claims write as a number. */
function decodeNote(note: string | number, worker: string): string {
  return typeof note === 'string' ? note : `the lease of ${worker} lapsed at ${decodeTime(note)}`
}
