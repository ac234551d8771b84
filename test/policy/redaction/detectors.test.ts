import { describe, expect, it } from 'vitest'
import { detect, isSecretName, type Detector } from '../../../src/policy/redaction/detectors.ts'
import { mergeSpans, replaceSpans } from '../../../src/policy/redaction/spans.ts'

function mask(detector: Detector, text: string): string {
  return replaceSpans(text, mergeSpans(detect(text, new Set([detector]))), () => '#')
}

const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'

describe('detect', () => {
  it.each<[Detector, string, string]>([
    ['bearer-token', 'Authorization: Bearer abc.DEF-123', 'Authorization: Bearer #'],
    ['bearer-token', 'basic dXNlcjpwYXNz', 'basic #'],
    ['bearer-token', 'the bearer of news', 'the bearer of news'],
    ['api-key', 'sk_live_4eC39HqLyjWDarjtT1zdp7dc', '#'],
    ['api-key', 'key ghp_abcdefghijklmnopqrstuvwxyz0123456789!', 'key #!'],
    ['api-key', 'AKIAIOSFODNN7EXAMPLE', '#'],
    ['api-key', 'GET /x?api_key=abcd1234&y=1', 'GET /x?api_key=#&y=1'],
    ['api-key', 'password: "hunter22"', 'password: "#"'],
    ['api-key', 'the token expired', 'the token expired'],
    ['jwt', `bad ${jwt}, retry`, 'bad #, retry'],
    ['jwt', `cut ${jwt.slice(0, 15)}`, 'cut #'],
    ['card-number', 'card 4111 1111 1111 1111 declined', 'card # declined'],
    ['card-number', 'card 4111111111111111', 'card #'],
    ['card-number', 'order 12 4111-1111-1111-1111 x', 'order 12 # x'],
    ['card-number', '4111111111111112', '4111111111111112'],
    ['card-number', '378282246310005', '#'],
    ['email', 'no mailbox mia.k+x@mail.example.org.', 'no mailbox #.'],
    ['email', 'jörg@müller.de', '#'],
    ['email', 'user@localhost', 'user@localhost'],
    ['url-credentials', 'connect postgres://app:pa55@db/x', 'connect postgres://#@db/x'],
    ['url-credentials', 'see https://example.com/a@b', 'see https://example.com/a@b'],
    [
      'private-key',
      'x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y',
      'x # y',
    ],
    ['private-key', '-----BEGIN PRIVATE KEY-----\nMIIE', '#'],
  ])('%s in %j', (detector, text, expected) => {
    expect(mask(detector, text)).toBe(expected)
  })

  it('takes about linear time for strings that are made to be slow', () => {
    const all = new Set<Detector>([
      'bearer-token',
      'api-key',
      'jwt',
      'card-number',
      'email',
      'url-credentials',
      'private-key',
    ])
    for (const part of [
      'eyJaaaaaaaa.',
      'a.',
      'a@',
      '1 ',
      '1',
      'a://',
      'token=',
      '-----BEGIN PRIVATE KEY-----',
    ])
      expect(
        mergeSpans(detect(part.repeat(Math.floor(500_000 / part.length)), all)).length,
      ).toBeGreaterThanOrEqual(0)
  })
})

describe('isSecretName', () => {
  it.each([
    'password',
    'Authorization',
    'x-api-key',
    'clientSecret',
    'access_token',
    'DB_PASSWORD',
  ])('knows %s', (name) => expect(isSecretName(name)).toBe(true))
  it.each(['tokens', 'author', 'id', 'passwordless', 'secretary', 'key'])(
    'does not mean %s',
    (name) => expect(isSecretName(name)).toBe(false),
  )
})
