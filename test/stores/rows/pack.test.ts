import { describe, expect, it } from 'vitest'
import { pack } from '../../../src/stores/rows/pack.ts'
import { aLetter } from '../../../src/testing/index.ts'

describe('pack', () => {
  it.each([
    'version',
    'epoch',
    'retries',
    'backoffMs',
    'historyOmitted',
    'occurrences',
    'maxRetries',
    'replays',
  ] as const)('rejects a letter whose %s is not a finite number', (name) => {
    for (const value of [Number.NaN, Infinity, -Infinity])
      expect(() => pack(aLetter({ [name]: value }))).toThrow(
        expect.objectContaining({
          code: 'INVALID_INPUT',
          message: expect.stringContaining(
            `${name} must be a finite number, got ${value}`,
          ) as string,
        }),
      )
  })
})
