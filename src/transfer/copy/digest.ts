import { createHash } from 'node:crypto'
import type { Payload } from '../../letter/letter.ts'
import type { StoredLetter } from '../../store.ts'

/**
 * JSON in which keys stand in order, so that equal values are equal strings whatever store they
 * come from.
 */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}

/**
 * The sha256 over all that a store knows of a letter, both versions of its payload included. Only
 * when a lease ends is left out: it is extended without a new version, and so without a way to tell
 * which of two is the newer.
 */
export function digestOf({ letter, original, waitsFor = [] }: StoredLetter): string {
  const { payload, lease, ...rest } = letter
  const told = canonical([
    rest,
    lease && [lease.worker, lease.epoch],
    factsOf(payload),
    original && factsOf(original),
    waitsFor.toSorted(),
  ])
  const hash = createHash('sha256').update(told).update(payload.bytes)
  if (original) hash.update(original.bytes)
  return hash.digest('hex')
}

/**
 * With the number of bytes, so that the bytes of two payloads in a row can be read in one way only.
 */
function factsOf({ bytes, ...facts }: Payload): unknown {
  return { ...facts, bytes: bytes.byteLength }
}
