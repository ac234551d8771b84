import { createHash } from 'node:crypto'

/** A dedupeKey as it is indexed: keys may be of any length, may look alike, and an index takes only short ones. */
export function keyHash(key: string): Buffer {
  return createHash('sha256').update(key, 'utf16le').digest()
}
