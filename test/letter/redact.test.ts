import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/letter/letter.ts'
import { isSecretName, redactJson, redactText } from '../../src/letter/redact.ts'

describe('isSecretName', () => {
  it.each([
    'password',
    'dbPassword',
    'API-Key',
    'x_api_key',
    'Authorization',
    'proxy-authorization',
    'Set-Cookie',
    'access_token',
    'clientSecret',
    'cvc',
    'card number',
  ])('knows %s', (name) => expect(isSecretName(name)).toBe(true))

  it.each(['author', 'keyboard', 'passenger', 'opinion', 'to', 'key', 'cvs'])(
    'leaves %s alone',
    (name) => expect(isSecretName(name)).toBe(false),
  )
})

describe('redactJson', () => {
  it('masks the values of secret names at every depth', () => {
    const value = { user: 'mia', login: [{ password: 'x', pin: 1234, token: { a: 1 } }] }
    expect(redactJson(value)).toEqual({
      user: 'mia',
      login: [{ password: '[masked]', pin: '[masked]', token: '[masked]' }],
    })
  })

  it('keeps empty values, so that it can be seen that there was none', () => {
    const value = { password: null, token: '', secret: false }
    expect(redactJson(value)).toEqual(value)
  })

  it('keeps a key named __proto__', () => {
    const value = JSON.parse('{"__proto__":{"token":"x"}}') as Json
    expect(JSON.stringify(redactJson(value))).toBe('{"__proto__":{"token":"[masked]"}}')
  })

  it('keeps the shape of any value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const copy = JSON.parse(JSON.stringify(value)) as Json
        expect(Array.isArray(redactJson(copy))).toBe(Array.isArray(copy))
      }),
    )
  })
})

describe('redactText', () => {
  it.each([
    ['a=1&password=hunter2&b=2', 'a=1&password=[masked]&b=2'],
    ['GET /?api_key=abc failed', 'GET /?api_key=[masked] failed'],
    ['{"token": "a b", "n": 1}', '{"token": [masked], "n": 1}'],
    ['Authorization: Bearer abc.def', 'Authorization: [masked]'],
    ['got 401 for Bearer abcdefgh123', 'got 401 for Bearer [masked]'],
    ['postgres://mia:hunter2@db/x', 'postgres://[masked]@db/x'],
    ['https://example.com/a@b', 'https://example.com/a@b'],
    ['the token expired', 'the token expired'],
  ])('%s', (given, expected) => expect(redactText(given)).toBe(expected))
})
