import { expect, it } from 'vitest'
import { keyHash } from '../../../src/stores/rows/key-hash.ts'

it('keyHash returns 32 bytes, equal only for equal keys, also with lone surrogates', () => {
  expect(keyHash('key').equals(keyHash('key'))).toBe(true)
  expect(keyHash('k'.repeat(10_000))).toHaveLength(32)
  expect(keyHash('\ud800').equals(keyHash('\ud801'))).toBe(false)
})
