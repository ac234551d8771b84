import { RedriveError } from '../errors.ts'
import type { BulkInput, EditPreview, SampleLetter, Transform } from '../letter/bulk-action.ts'
import type { JsonPatch } from '../letter/json-patch.ts'
import type { DeadLetter, Payload } from '../letter/letter.ts'
import type { Change, Edit, Mover } from '../letter/moves.ts'
import { diffPayloads } from '../letter/payload-diff.ts'
import { decodePayload, encodePayload } from '../letter/payload.ts'
import type { PayloadUndo, UndoSubject } from '../letter/result.ts'
import type { Store } from '../store.ts'

/** An edit of the payload of one letter. */
export interface PayloadEdit {
  payload?: Payload
  patch?: JsonPatch
}

export interface EditContext {
  /** Functions for bulk edits, by name. */
  transforms: Readonly<Record<string, Transform>>
  /** The values that an edit gives to a letter. Throws if a rule refuses them. */
  editedValues: (letter: DeadLetter, edit: PayloadEdit) => Edit
  /** The change that an edit makes, once the present values are saved. */
  prepareEdit: (letter: DeadLetter, edit: PayloadEdit, mover: Mover) => Promise<Change>
  /** Removes what `prepareEdit` has saved, after the change was not written. */
  removeUnusedEdit: (letter: DeadLetter) => Promise<void>
  /** What undoes the edit of this version of a letter. */
  findUndo: (letter: UndoSubject, editedVersion: number) => Promise<PayloadUndo>
  /** Removes what the edit of this version of a letter has saved. */
  removeSavedEdit: (letterId: string, editedVersion: number) => Promise<void>
}

/** The edit of one letter. Throws if the function does, or returns nothing. */
export function editOf(
  { transforms }: Pick<EditContext, 'transforms'>,
  letter: DeadLetter,
  { patch, transform: name = '' }: BulkInput,
): PayloadEdit {
  if (patch) return { patch }
  const value = transforms[name]!(decodePayload(letter.payload), letter)
  if (value === undefined || value instanceof Promise)
    throw new RedriveError(
      'INVALID_INPUT',
      `transform ${JSON.stringify(name)} returned ${value === undefined ? 'undefined' : 'a promise'}: it must return the new payload`,
    )
  const isText = typeof value === 'string' || value instanceof Uint8Array
  return { payload: encodePayload(value, isText ? letter.payload.contentType : undefined) }
}

/** Whether this process can make the edits of an action. */
export function canEdit(
  { transforms }: Pick<EditContext, 'transforms'>,
  input: BulkInput,
): boolean {
  return input.transform === undefined || Object.hasOwn(transforms, input.transform)
}

/** Rejects the name of a function that this process does not have. */
export function checkTransform(context: Pick<EditContext, 'transforms'>, input: BulkInput): void {
  if (!canEdit(context, input))
    throw new RedriveError(
      'INVALID_INPUT',
      `transform ${JSON.stringify(input.transform)} is unknown in this process: add it to the option transforms`,
    )
}

/** What an edit would change in some letters. */
export async function previewEdits(
  context: Pick<EditContext, 'transforms' | 'editedValues'> & { store: Store },
  sample: readonly SampleLetter[],
  input: BulkInput,
): Promise<EditPreview[]> {
  const letters = await context.store.get(sample.map(({ id }) => id))
  return letters.map((letter) => {
    try {
      const { payload } = context.editedValues(letter, editOf(context, letter, input))
      return { id: letter.id, diff: diffPayloads(letter.payload, payload ?? letter.payload) }
    } catch (error) {
      return { id: letter.id, error: errorText(error) }
    }
  })
}

export function errorText(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 500)
}
