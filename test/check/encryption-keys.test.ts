import { describe, expect, it } from 'vitest'
import { isKeyProvider, parseKey, provideKeys } from '../../src/check/encryption-keys.ts'

const bytes = Buffer.alloc(32, 7)

describe('parseKey', () => {
  it('accepts 32 bytes, and their base64 with a final newline', () => {
    for (const key of [bytes, bytes.toString('base64'), `${bytes.toString('base64')}\n`])
      expect(Buffer.from(parseKey(key)!)).toEqual(bytes)
  })

  it.each([
    Buffer.alloc(31),
    Buffer.alloc(33).toString('base64'),
    Buffer.alloc(16).toString('hex'),
    'x'.repeat(200),
    '',
    undefined,
    5,
  ])('rejects %o', (key) => {
    expect(parseKey(key)).toBeUndefined()
  })
})

describe('provideKeys', () => {
  it('returns the current key, and each key by its id', () => {
    const provider = provideKeys({ keys: { a: bytes, b: Buffer.alloc(32, 8) }, current: 'b' })
    expect(isKeyProvider(provider)).toBe(true)
    expect(provider.current()).toEqual({ id: 'b', key: Buffer.alloc(32, 8) })
    expect(provider.get('a')).toEqual(bytes)
    expect(provider.get('constructor')).toBeUndefined()
  })
})
