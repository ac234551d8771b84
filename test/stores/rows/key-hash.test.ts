import { expect, it } from 'vitest'
import { keyHash } from '../../../src/stores/rows/key-hash.ts'

it('a key has one hash of one length, and keys that UTF-8 cannot tell apart have two', () => {
  expect(keyHash('key').equals(keyHash('key'))).toBe(true)
  expect(keyHash('k'.repeat(10_000))).toHaveLength(32)
  expect(keyHash('\ud800').equals(keyHash('\ud801'))).toBe(false)
})
