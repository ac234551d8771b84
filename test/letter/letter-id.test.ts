import { describe, expect, it } from 'vitest'
import { isLetterId } from '../../src/letter/letter-id.ts'

const id = '01995c3a-0000-7000-8000-00000000000f'

describe('isLetterId', () => {
  it('accepts a UUID in lower case', () => {
    expect(isLetterId(id)).toBe(true)
  })

  it.each([
    ['upper case', id.toUpperCase()],
    ['too short', id.slice(0, -1)],
    ['too long', `${id}0`],
    ['a line break at the end', `${id}\n`],
    ['no hyphens', id.replaceAll('-', '')],
    ['other characters', id.replace('f', 'g')],
    ['an empty string', ''],
  ])('rejects %s', (_, other) => {
    expect(isLetterId(other)).toBe(false)
  })
})
