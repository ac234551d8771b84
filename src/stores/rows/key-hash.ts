import { createHash } from 'node:crypto'

/** The dedupe key as indexed. Keys can have any length; indexes need short ones. */
export function keyHash(key: string): Buffer {
  return createHash('sha256').update(key, 'utf16le').digest()
}
