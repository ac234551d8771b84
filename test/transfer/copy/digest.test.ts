import { describe, expect, it } from 'vitest'
import { digestOf } from '../../../src/transfer/copy/digest.ts'
import type { StoredLetter } from '../../../src/store.ts'
import { aLetter } from '../../../src/testing/index.ts'

describe('digestOf', () => {
  const letter = aLetter({ dependsOn: ['a', 'b'] })
  const bytes = (...values: number[]) => ({ ...letter.payload, bytes: Uint8Array.from(values) })
  const plain: StoredLetter = { letter, waitsFor: ['a', 'b'] }

  it('ignores the order of keys and dependencies, and the class of the bytes', () => {
    const buffer = Buffer.from(letter.payload.bytes)
    const turned = Object.fromEntries(Object.entries(letter).toReversed()) as typeof letter
    const other = { ...turned, payload: { ...letter.payload, bytes: buffer } }
    expect(digestOf({ letter: other, waitsFor: ['b', 'a'] })).toBe(digestOf(plain))
  })

  it('ignores the end of a lease, but not its worker', () => {
    const leased = (worker: string, expiresAt: string): string =>
      digestOf({ letter: { ...letter, lease: { worker, epoch: 1, expiresAt } } })
    const [one, later] = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z'] as const
    expect(leased('w', one)).toBe(leased('w', later))
    expect(leased('w', one)).not.toBe(leased('v', one))
  })

  it.each<[string, StoredLetter]>([
    ['a field', { ...plain, letter: { ...letter, epoch: 1 } }],
    ['a byte', { ...plain, letter: { ...letter, payload: bytes(1) } }],
    ['the captured payload', { ...plain, original: letter.payload }],
    ['the open dependencies', { letter, waitsFor: ['a'] }],
    ['the history', { ...plain, letter: { ...letter, history: [] } }],
  ])('depends on %s', (_, other) => {
    expect(digestOf(other)).not.toBe(digestOf(plain))
  })

  it('depends on each byte of the captured payload', () => {
    const [one, other] = [bytes(1), bytes(2)].map((original) => digestOf({ letter, original }))
    expect(one).not.toBe(other)
  })

  it('distinguishes bytes of the payload from bytes of the captured payload', () => {
    const one = { letter: { ...letter, payload: bytes(1, 2) }, original: bytes(3) }
    const other = { letter: { ...letter, payload: bytes(1) }, original: bytes(2, 3) }
    expect(digestOf(one)).not.toBe(digestOf(other))
  })
})
