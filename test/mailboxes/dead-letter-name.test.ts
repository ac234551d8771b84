import { describe, expect, it } from 'vitest'
import { deadLetterName } from '../../src/index.ts'

describe('deadLetterName', () => {
  it('is the name of the source with -dlq', () => {
    expect(deadLetterName('orders')).toBe('orders-dlq')
    expect(deadLetterName('x'.repeat(196))).toHaveLength(200)
  })

  it('refuses a source whose dead letter mailbox would have too long a name', () => {
    expect(() => deadLetterName('x'.repeat(197))).toThrow(
      expect.objectContaining({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('use a source name of 196 characters or fewer') as string,
      }),
    )
  })

  it.each(['', 'a\nb', 7 as unknown as string])('refuses %j, which is no name', (source) => {
    expect(() => deadLetterName(source)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })
})
