import { createHash } from 'node:crypto'
import { toCanonicalJson } from '../../letter/canonical-json.ts'
import type { Payload } from '../../letter/letter.ts'
import type { StoredLetter } from '../../store.ts'

/**
 * The SHA-256 of everything that a store has of a letter, including both versions of its payload.
 * Only the end of its lease is left out: a lease is extended without a new version, so it is
 * unknown which of two values is newer.
 */
export function digestOf({ letter, original, waitsFor = [] }: StoredLetter): string {
  const { payload, lease, ...rest } = letter
  const json = toCanonicalJson([
    rest,
    lease && [lease.worker, lease.epoch],
    withByteCount(payload),
    original && withByteCount(original),
    waitsFor.toSorted(),
  ])
  const hash = createHash('sha256').update(json).update(payload.bytes)
  if (original) hash.update(original.bytes)
  return hash.digest('hex')
}

/**
 * The payload with the number of its bytes: without it, the concatenated bytes of two payloads
 * would be ambiguous.
 */
function withByteCount({ bytes, ...facts }: Payload): unknown {
  return { ...facts, bytes: bytes.byteLength }
}
