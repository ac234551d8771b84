import { randomFillSync } from 'node:crypto'

/**
 * A random string for tokens and session ids, in base64url. Not part of the clock: a secret must be
 * unpredictable in tests as well.
 */
export function createSecret(bytes: number): string {
  return randomFillSync(Buffer.alloc(bytes)).toString('base64url')
}
