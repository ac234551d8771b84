import { checkBy, checkNote } from '../check/text.ts'
import { RedriveError } from '../errors.ts'
import type { AuditAction } from '../letter/audit.ts'
import type { DeadLetter } from '../letter/letter.ts'
import type { Move } from '../letter/move-table.ts'
import type { Store } from '../store.ts'
import type { ActDetails } from './audit/audit-log.ts'

/** An action on a letter. */
export interface LetterAct {
  id: string
  move: Extract<Move, AuditAction> | 'reschedule'
  /** The name in the audit log. Default: that of the move. */
  action?: AuditAction
  by: string
  note?: string | undefined
  /** The version that the caller has read. A letter with another one does not change. */
  ifVersion?: number | undefined
}

/** Adds details to the entry of an action in the audit log. */
export type Describe = (details: ActDetails) => void

/** Checks the name and the note of an action. An empty note is no note. */
export function checkAct({ by, note, ...act }: LetterAct): LetterAct {
  return {
    ...act,
    by: checkBy(by),
    ...(note === undefined || note === '' ? {} : { note: checkNote(note) }),
  }
}

/** The letter, if it has the version that somebody expects. */
export async function loadLetter(
  store: Pick<Store, 'get'>,
  id: string,
  ifVersion?: number,
): Promise<DeadLetter> {
  const [letter] = await store.get([id])
  if (!letter) throw new RedriveError('LETTER_NOT_FOUND', `there is no letter ${id}: check the id`)
  if (ifVersion !== undefined && letter.version !== ifVersion)
    throw new RedriveError(
      'VERSION_CONFLICT',
      `letter ${id} has version ${letter.version}, not ${ifVersion}: read it again`,
    )
  return letter
}
