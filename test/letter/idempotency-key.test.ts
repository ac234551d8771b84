import { describe, expect, it } from 'vitest'
import { idempotencyKeyOf } from '../../src/letter/idempotency-key.ts'

describe('idempotencyKeyOf', () => {
  const work = { id: 'a', payload: { version: 1 }, replays: 0 }

  it('is the same for a remainder as for the payload version it derives from', () => {
    expect(idempotencyKeyOf({ ...work, payload: { version: 4, restOf: 1 } })).toBe(
      idempotencyKeyOf(work),
    )
  })

  it('differs by letter, payload version and replay', () => {
    const keys = [
      work,
      { ...work, id: 'b' },
      { ...work, payload: { version: 2 } },
      { ...work, replays: 1 },
    ].map(idempotencyKeyOf)
    expect(new Set(keys).size).toBe(4)
  })
})
