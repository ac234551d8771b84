import type { DeadLetter } from '../../src/letter/letter.ts'
import { aLetter } from '../../src/testing/index.ts'

/** The letters of `disk-fault-store.ts`: the same in every process. */
export function sampleLetters(): { first: DeadLetter; second: DeadLetter } {
  const id = (n: number): string => `0198c0de-0000-7000-8000-00000000000${n}`
  const bytes = new TextEncoder().encode('a'.repeat(3000))
  const payload = { bytes, contentType: 'text/plain', size: bytes.length, version: 1 }
  return { first: aLetter({ id: id(1), payload }), second: aLetter({ id: id(2), payload }) }
}
