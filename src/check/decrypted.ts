import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { keyIdOf } from '../letter/sealed.ts'

/** Throws DECRYPTION_FAILED if this process could not decrypt the letter. */
export function checkDecrypted({ id, payload, corrupt }: DeadLetter): void {
  const keyId = keyIdOf(payload)
  if (keyId === undefined) return
  const why = corrupt ?? 'this process has no keys: set the option encryption'
  throw new RedriveError(
    'DECRYPTION_FAILED',
    `letter ${id} is encrypted with key ${keyId}, and this action needs its payload: ${why}`,
  )
}
