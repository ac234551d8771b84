import { createHash } from 'node:crypto'
import type { DeadLetter, Json, Payload } from '../../letter/letter.ts'
import type { ActDetails } from './audit-log.ts'

/** What the audit log says about a letter. */
export function describeLetter({ state, version }: DeadLetter): { [key: string]: Json } {
  return { state, version }
}

/** A letter before and after an action. A payload that was edited appears as a hash. */
export function describeEdit(
  before: DeadLetter,
  after: DeadLetter,
): Required<Omit<ActDetails, 'what'>> {
  const isEdited = before.payload.version !== after.payload.version
  const describe = (letter: DeadLetter): { [key: string]: Json } => ({
    ...describeLetter(letter),
    ...(isEdited ? { payload: describePayload(letter.payload) } : {}),
  })
  return { before: describe(before), after: describe(after) }
}

function describePayload({ version, size, bytes }: Payload): { [key: string]: Json } {
  return { version, size, sha256: createHash('sha256').update(bytes).digest('hex') }
}
