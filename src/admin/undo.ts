import type { PayloadUndo, UndoSubject } from '../letter/result.ts'
import type { Store } from '../store.ts'
import { readSavedEdit } from './edit-input.ts'
import { findEdit } from './edits.ts'

/**
 * The payload before the edit of this version of a letter, as a new version. A payload that was
 * changed again stays: restoring the older one would discard that change.
 */
export async function findUndo(
  store: Store,
  { id, payload }: UndoSubject,
  editedVersion: number,
): Promise<PayloadUndo> {
  const record = await findEdit(store, id, editedVersion)
  if (!record) return { refusal: 'its edit was undone already' }
  const { payload: before } = readSavedEdit(record.value)
  if (before?.version !== payload.version - 1)
    return { refusal: 'its payload was changed again after the edit' }
  return { payload: { ...before, version: payload.version + 1 } }
}
