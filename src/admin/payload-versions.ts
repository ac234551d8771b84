import { describeValue } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import { isUndoNote } from '../letter/bulk-action.ts'
import type { DeadLetter, Payload } from '../letter/letter.ts'
import type { Timestamp } from '../letter/time.ts'
import { diffPayloads, type PayloadDiff } from '../letter/payload-diff.ts'
import type { Store } from '../store.ts'
import { readSavedEdit, undoNote, type SavedEdit } from './edit-input.ts'
import { listEdits } from './edits.ts'

/** A stored version of a payload. */
export interface PayloadVersion extends Payload {
  /** Who made this version, and when. Absent if unknown, as for the rest of a partial result. */
  by?: string
  at?: Timestamp
}

/**
 * The stored versions of a payload, the oldest first and the current one last: as captured, before
 * each edit that was not undone, and now.
 */
export async function readPayloadVersions(store: Store, id: string): Promise<PayloadVersion[]> {
  const [letter] = await store.get([id])
  if (!letter) throw new RedriveError('LETTER_NOT_FOUND', `there is no letter ${id}: check the id`)
  const edits: SavedEdit[] = []
  for await (const { value } of listEdits(store, id)) edits.push(readSavedEdit(value))
  const versions = new Map<number, Payload>()
  const original = await store.original(id)
  if (original) versions.set(original.version, original)
  for (const { payload } of edits) if (payload) versions.set(payload.version, payload)
  versions.set(letter.payload.version, letter.payload)
  return [...versions.values()]
    .sort((one, other) => one.version - other.version)
    .map((payload) => ({ ...payload, ...authorOf(payload, letter, edits) }))
}

/** An edit saves the version that it replaces, so it made the next one. */
function authorOf(
  { version, restOf }: Payload,
  letter: DeadLetter,
  edits: readonly SavedEdit[],
): { by?: string; at?: Timestamp } {
  const { history, historyOmitted } = letter
  if (version === 1) {
    const [first] = history
    return first?.action === 'capture' ? { by: first.actor, at: first.at } : {}
  }
  if (restOf !== undefined) return {}
  const edit = edits.find(({ payload }) => payload?.version === version - 1)
  const isEntry = history.some(
    ({ action, actor, at }) => action === 'edit' && actor === edit?.by && at === edit.at,
  )
  // Of two edits at the same time, the one in the history was written.
  if (edit?.by !== undefined && edit.at !== undefined && (isEntry || historyOmitted > 0))
    return { by: edit.by, at: edit.at }
  const undo = history.findLast(
    ({ action, note = '' }) => action === 'edit' && (note === undoNote || isUndoNote(note)),
  )
  return undo && version === letter.payload.version ? { by: undo.actor, at: undo.at } : {}
}

/** The differences between two stored versions. Default: from the first to the current one. */
export async function diffVersions(
  store: Store,
  id: string,
  from?: number,
  to?: number,
  show: (payload: Payload) => Payload = (payload) => payload,
): Promise<PayloadDiff> {
  const versions = await readPayloadVersions(store, id)
  const find = (name: string, wanted: number | undefined, or: PayloadVersion): PayloadVersion => {
    if (wanted === undefined) return or
    const found = versions.find(({ version }) => version === wanted)
    if (found) return found
    const known = versions.map(({ version }) => version).join(', ')
    throw new RedriveError(
      'INVALID_INPUT',
      `\`${name}\` must be a stored version of the payload of letter ${id} (${known}), got ${describeValue(wanted)}`,
    )
  }
  const before = find('from', from, versions[0]!)
  const after = find('to', to, versions.at(-1)!)
  return diffPayloads(show(before), show(after))
}
