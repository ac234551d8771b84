import { randomFillSync } from 'node:crypto'

/**
 * A random string for tokens and session ids, in base64url. Not part of the clock: a secret must be
 * unpredictable in tests as well.
 */
export function createSecret(bytes: number): string {
  return randomFillSync(Buffer.alloc(bytes)).toString('base64url')
}

const poolBytes = 4096
let pool = new Uint8Array(0)

/** Unpredictable bytes for keys and nonces. Many small requests share one call of the system. */
export function createRandomBytes(length: number): Uint8Array<ArrayBuffer> {
  if (length > pool.length) pool = randomFillSync(new Uint8Array(Math.max(poolBytes, length)))
  const bytes = pool.slice(0, length)
  // Bytes that were handed out must not stay in memory, and are never used twice.
  pool.fill(0, 0, length)
  pool = pool.subarray(length)
  return bytes
}
