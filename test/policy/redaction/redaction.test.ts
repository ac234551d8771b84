import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import type { PayloadDiff } from '../../../src/letter/payload-diff.ts'
import { encodePayload } from '../../../src/letter/payload.ts'
import { Redaction } from '../../../src/policy/redaction/redaction.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'

const secret = 'mia@example.com'

/** A letter that has the secret everywhere. */
function fullLetter(): DeadLetter {
  const cause = { name: 'Error', message: secret, causes: [], at: '2026-01-01T00:00:00.000Z' }
  const failure = { ...cause, stack: `Error: ${secret}\n at x`, hint: secret, causes: [cause] }
  return {
    ...aLetter(),
    dedupeKey: `mail-${secret}`,
    lane: secret,
    source: { kind: 'operation', type: 'mail', endpoint: secret, context: { to: secret } },
    payload: encodePayload({ to: secret, list: [secret, 1], [secret]: 1 }),
    headers: { to: secret },
    task: { id: secret, description: secret, source: secret },
    metadata: { to: secret },
    tags: [secret],
    failure,
    firstFailure: failure,
    review: { neededSince: '2026-01-01T00:00:00.000Z', note: secret },
    history: [
      {
        at: '2026-01-01T00:00:00.000Z',
        actor: 'capture',
        action: 'capture',
        from: null,
        to: 'pending',
        note: secret,
        failure: { name: 'Error', message: secret, category: 'unknown' },
      },
    ],
  }
}

function textOf(letter: DeadLetter): string {
  return JSON.stringify({ ...letter, payload: Buffer.from(letter.payload.bytes).toString() })
}

function payloadText(redaction: Redaction, value: unknown, contentType?: string): string {
  return Buffer.from(redaction.payload(encodePayload(value, contentType)).bytes).toString()
}

describe('Redaction', () => {
  it('hides a secret in every part of a letter', () => {
    const letter = fullLetter()
    const before = textOf(letter)
    const shown = new Redaction({}).letter(letter)
    expect(textOf(shown)).not.toContain(secret)
    expect(shown.payload.redacted).toBe(true)
    expect(textOf(letter)).toBe(before)
  })

  it.each(['63040000000000018', '400000000000000127', '6304000000000001230'])(
    'finds the card number %s, which JavaScript would round',
    (card) => {
      const text = `{"card":${card},"list":[${card}],"id":1234567890123456789}`
      expect(payloadText(new Redaction({}), text, 'application/json')).toBe(
        '{"card":"[redacted]","list":["[redacted]"],"id":1234567890123456789}',
      )
    },
  )

  it('leaves the digits of long numbers that are no secret', () => {
    const text = '{ "id": 1234567890123456789, "n": 1.10 }'
    expect(payloadText(new Redaction({}), text, 'application/json')).toBe(text)
  })

  it('finds a pattern in a number that JavaScript would round', () => {
    const redaction = new Redaction({ patterns: [/^12345678901234567\d\d$/], detectors: [] })
    const text = '{"id":1234567890123456789}'
    expect(payloadText(redaction, text, 'application/json')).toBe('{"id":"[redacted]"}')
  })

  it('hides a rounded number of a diff that may be a card number', () => {
    const change = {
      path: '/n',
      before: Number('6304000000000001230'),
      after: Number('1234567890123456789'),
    }
    const diff = new Redaction({}).diff({ kind: 'json', changes: [change] } as PayloadDiff)
    expect(diff).toMatchObject({ changes: [{ before: '[redacted]', after: change.after }] })
  })

  it('leaves a letter without secrets as it is', () => {
    const letter = aLetter()
    expect(new Redaction({}).letter(letter)).toEqual(letter)
  })

  it.each<[string, unknown, unknown]>([
    ['payload.a', { a: { b: 1 }, c: 2 }, { a: '[redacted]', c: 2 }],
    ['payload.a.b', { a: { b: 1, c: 2 }, b: 3 }, { a: { b: '[redacted]', c: 2 }, b: 3 }],
    [
      'payload.*.b',
      { x: { b: 1 }, y: { b: 2 } },
      { x: { b: '[redacted]' }, y: { b: '[redacted]' } },
    ],
    ['payload.items.*.n', { items: [{ n: 1 }] }, { items: [{ n: '[redacted]' }] }],
    ['payload.items.0', { items: [1, 2] }, { items: ['[redacted]', 2] }],
    ['payload.**.n', { n: 1, a: [{ n: 2 }] }, { n: '[redacted]', a: [{ n: '[redacted]' }] }],
  ])('hides %s', (path, value, expected) => {
    const redaction = new Redaction({ paths: [path], detectors: [] })
    expect(JSON.parse(payloadText(redaction, value))).toEqual(expected)
  })

  it('hides headers in any case, metadata and the context of a workflow by path', () => {
    const redaction = new Redaction({
      paths: ['headers.X-User', 'metadata.user.name', 'context.user'],
      detectors: [],
    })
    const shown = redaction.summary({
      ...aLetter(),
      headers: { 'x-user': 'mia', other: 'x' },
      metadata: { user: { name: 'mia', id: 1 } },
      source: { kind: 'workflow', name: 'w', taskId: 't', targets: [], context: { user: 'mia' } },
    })
    expect(shown.headers).toEqual({ 'x-user': '[redacted]', other: 'x' })
    expect(shown.metadata).toEqual({ user: { name: '[redacted]', id: 1 } })
    expect(shown.source).toMatchObject({ context: { user: '[redacted]' } })
  })

  it('hides matches of patterns, also in numbers', () => {
    const redaction = new Redaction({ patterns: ['77\\d+', /cust-\w+/i], detectors: [] })
    expect(JSON.parse(payloadText(redaction, { a: 7712, b: 12, c: 'of CUST-9' }))).toEqual({
      a: '[redacted]',
      b: 12,
      c: 'of [redacted]',
    })
  })

  it('hides text payloads, and finds JSON in them', () => {
    const redaction = new Redaction({ paths: ['payload.name'] })
    expect(payloadText(redaction, `to ${secret}`, 'text/plain')).toBe('to [redacted]')
    expect(payloadText(redaction, '{"name":"mia"}', 'text/plain')).toBe('{"name":"[redacted]"}')
  })

  it('hides bytes that are no text', () => {
    const shown = new Redaction({}).payload(encodePayload(new Uint8Array([255, 0, 1])))
    expect(shown).toMatchObject({ size: 0, redacted: true })
    expect(shown.bytes.byteLength).toBe(0)
  })

  it('hides strings that are too long to check', () => {
    expect(new Redaction({}).text('a'.repeat(2_000_000))).toBe('[redacted]')
  })

  it('keeps two keys apart that look alike once they are redacted', () => {
    expect(new Redaction({}).json({ 'a@b.de': 1, 'c@d.de': 2 }, 'metadata')).toEqual({
      '[redacted]': 1,
      '[redacted] 2': 2,
    })
  })

  it('does not take exponential time for paths with many **', () => {
    const path = `payload.${'**.a.'.repeat(9)}a`
    let value: unknown = 1
    for (let depth = 0; depth < 400; depth++) value = { a: value }
    const redaction = new Redaction({ paths: [path], detectors: [] })
    expect(payloadText(redaction, value)).toContain('[redacted]')
  })

  it.each([
    ['body.a', 'must begin with payload'],
    ['payload', 'must name from 1 to 20 keys'],
    ['payload..a', 'must name from 1 to 20 keys'],
    ['payload.**', 'must not end with **'],
  ])('rejects the path %s', (path, why) => {
    expect(() => new Redaction({ paths: [path] })).toThrow(why)
  })
})

describe('captured', () => {
  it('changes nothing without atCapture', () => {
    const letter = fullLetter()
    expect(new Redaction({}).captured(letter)).toBe(letter)
  })

  it('redacts what is stored in plain, and leaves payload and headers', () => {
    const letter = fullLetter()
    const stored = new Redaction({ atCapture: true }).captured(letter)
    expect(stored.payload).toBe(letter.payload)
    expect(stored.headers).toBe(letter.headers)
    const { payload: _, headers: __, failure: ___, firstFailure: ____, ...rest } = stored
    expect(JSON.stringify([rest.metadata, rest.dedupeKey, rest.lane, rest.tags])).not.toContain(
      secret,
    )
    expect(rest.source).toMatchObject({ context: { to: '[redacted]' } })
  })

  it('keeps different dedupe keys different', () => {
    const redaction = new Redaction({ atCapture: true })
    const keyOf = (dedupeKey: string): string | undefined =>
      redaction.captured({ ...aLetter(), dedupeKey }).dedupeKey
    expect(keyOf('a@example.com')).not.toBe(keyOf('b@example.com'))
    expect(keyOf('a@example.com')).toBe(keyOf('a@example.com'))
  })

  it('redacts payload and headers with redactStored, and says so', () => {
    const stored = new Redaction({ redactStored: true }).captured(fullLetter())
    expect(stored.payload.redacted).toBe(true)
    expect(Buffer.from(stored.payload.bytes).toString()).not.toContain(secret)
    expect(stored.headers).toEqual({ to: '[redacted]' })
    const harmless = new Redaction({ redactStored: true }).captured(aLetter())
    expect(harmless.payload.redacted).toBeUndefined()
  })
})
