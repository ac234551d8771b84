import { describe, expect, it } from 'vitest'
import { nearest } from '../../src/check/nearest.ts'

describe('nearest', () => {
  it('finds the nearest word, or undefined if none is near', () => {
    expect(nearest('lits', ['list', 'show'])).toBe('list')
    expect(nearest('xyz', ['list', 'show'])).toBeUndefined()
    expect(nearest('nope', ['copy', 'show'])).toBeUndefined()
    expect(nearest('status', ['queue', 'state'])).toBe('state')
    expect(nearest('retires', ['retries'])).toBe('retries')
    expect(nearest('drain', ['drainMs'])).toBe('drainMs')
  })
})
