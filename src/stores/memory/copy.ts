import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import type { StoredLetter } from '../../store.ts'
import type { Kept } from './kept.ts'

/**
 * A copy that shares nothing that can be changed. Much faster than structuredClone, and enough for what letters and
 * records are made of: plain objects, arrays, bytes and primitives.
 */
export function copyOf<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyOf) as T
  if (value instanceof Uint8Array) return Uint8Array.from(value) as T
  // The spread makes every key an own property, so that a key named __proto__ stays one below.
  const copy = { ...value } as Record<string, unknown>
  for (const key of Object.keys(copy)) {
    const inner = copy[key]
    if (typeof inner === 'object' && inner !== null) copy[key] = copyOf(inner)
  }
  return copy as T
}

type Compound = {
  [K in keyof DeadLetter]-?: NonNullable<DeadLetter[K]> extends object ? K : never
}[keyof DeadLetter]

/** The fields that hold more than a primitive; the compiler sees to it that none is forgotten. */
const compound = Object.keys({
  payload: true,
  source: true,
  failure: true,
  firstFailure: true,
  policy: true,
  metadata: true,
  tags: true,
  history: true,
  headers: true,
  dependsOn: true,
  lease: true,
  review: true,
  app: true,
  task: true,
  github: true,
} satisfies Record<Compound, true>)

/** A letter, or what is left of one, as a copy. Looking only where something can be shared makes it cheap. */
export function copyLetter<T extends object>(letter: T): T {
  const copy = { ...letter } as Record<string, unknown>
  for (const key of compound) if (copy[key] !== undefined) copy[key] = copyOf(copy[key])
  return copy as T
}

/** The letter as lists show it. */
export function summaryOf(letter: DeadLetter): LetterSummary {
  const { bytes: _, ...payload } = letter.payload
  const { history: __, ...rest } = letter
  return copyLetter({ ...rest, payload })
}

/** The letter with all that is known of it. */
export function storedOf({ letter, original, waitsFor }: Kept): StoredLetter {
  return {
    letter: copyLetter(letter),
    ...(original === letter.payload ? {} : { original: copyOf(original) }),
    ...(waitsFor && waitsFor.size > 0 ? { waitsFor: [...waitsFor] } : {}),
  }
}
