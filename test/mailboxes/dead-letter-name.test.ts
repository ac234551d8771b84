import { describe, expect, it } from 'vitest'
import { deadLetterName } from '../../src/index.ts'

describe('deadLetterName', () => {
  it('appends -dlq to the name of the source', () => {
    expect(deadLetterName('orders')).toBe('orders-dlq')
    expect(deadLetterName('x'.repeat(196))).toHaveLength(200)
  })

  it('rejects a source whose dead letter mailbox would have too long a name', () => {
    expect(() => deadLetterName('x'.repeat(197))).toThrow(
      expect.objectContaining({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('use a source name of at most 196 characters') as string,
      }),
    )
  })

  it.each(['', 'a\nb', 7 as unknown as string])('rejects the invalid name %j', (source) => {
    expect(() => deadLetterName(source)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })
})
