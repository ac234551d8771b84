import { describe, expect, it } from 'vitest'
import { checkBy, checkNote, checkReason, checkText } from '../../src/check/text.ts'

describe('checkText', () => {
  it('returns the string, without lone surrogates', () => {
    expect(checkText('title', ' a b ', 5)).toBe(' a b ')
    expect(checkText('title', 'a\ud800', 5)).toBe('a\ufffd')
  })

  it.each<[unknown, string]>([
    ['', '`title` must be a non-blank string, got ""'],
    [' \n', '`title` must be a non-blank string, got " \\n"'],
    [undefined, '`title` must be a non-blank string, got undefined'],
    [5, '`title` must be a non-blank string, got 5'],
    ['123456', '`title` must have at most 5 characters, got 6'],
  ])('rejects %j', (value, message) => {
    expect(() => checkText('title', value, 5)).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT', message }) as Error,
    )
  })

  it.each([
    ['a name', checkBy, 200],
    ['a reason', checkReason, 1000],
    ['a note', checkNote, 4000],
  ])('limits the length of %s', (_, check, max) => {
    expect(check('x'.repeat(max))).toHaveLength(max)
    expect(() => check('x'.repeat(max + 1))).toThrow(`at most ${max} characters, got ${max + 1}`)
  })
})
