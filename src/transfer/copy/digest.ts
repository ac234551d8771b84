import { createHash } from 'node:crypto'
import type { Payload } from '../../letter/letter.ts'
import type { StoredLetter } from '../../store.ts'

/**
 * JSON with sorted keys, so that equal values give equal strings, whatever store they come from.
 */
export function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}

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
