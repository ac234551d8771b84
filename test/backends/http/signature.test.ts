import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { sign, verifySignature } from '../../../src/backends/http/signature.ts'

const secret = 'a secret that two sides share'
const nowMs = 1_700_000_000_500
const body = '{"order":42}'

describe('sign', () => {
  it('contains the seconds, and an HMAC over them and the body', () => {
    const hex = createHmac('sha256', secret).update(`1700000000.${body}`).digest('hex')
    expect(sign(body, secret, nowMs)).toBe(`t=1700000000,v1=${hex}`)
  })

  it('signs a string and its bytes alike', () => {
    expect(sign('é', secret, nowMs)).toBe(sign(Buffer.from('é'), secret, nowMs))
  })
})

describe('verifySignature', () => {
  const header = sign(body, secret, nowMs)

  it('accepts a signature within five minutes either way', () => {
    for (const at of [nowMs, nowMs + 299_000, nowMs - 299_000])
      expect(verifySignature(header, body, secret, at)).toBe(true)
  })

  it('accepts any of several signatures, so that a secret can be rotated', () => {
    const old = sign(body, 'an old secret', nowMs).split(',')[1]!
    expect(verifySignature(`${header},${old}`, body, secret, nowMs)).toBe(true)
    expect(
      verifySignature(`t=1700000000,${old},${header.split(',')[1]}`, body, secret, nowMs),
    ).toBe(true)
  })

  it('accepts a header as node:http provides it', () => {
    expect(verifySignature([header], body, secret, nowMs)).toBe(true)
  })

  it.each<[string, string | undefined, string, string, number]>([
    ['no header', undefined, body, secret, nowMs],
    ['an empty one', '', body, secret, nowMs],
    ['another body', header, `${body} `, secret, nowMs],
    ['another secret', header, body, `${secret} `, nowMs],
    ['no secret', sign(body, '', nowMs), body, '', nowMs],
    ['another time', header.replace('t=1700000000', 't=1700000001'), body, secret, nowMs],
    ['no time', header.split(',')[1]!, body, secret, nowMs],
    ['no signature', 't=1700000000', body, secret, nowMs],
    ['half of a signature', header.slice(0, -2), body, secret, nowMs],
    ['a longer one', `${header}00`, body, secret, nowMs],
    ['an old one', header, body, secret, nowMs + 301_000],
    ['one from the future', header, body, secret, nowMs - 301_000],
    ['any when the time is unknown', header, body, secret, Number.NaN],
  ])('refuses %s', (_, given, text, key, at) => {
    expect(verifySignature(given, text, key, at)).toBe(false)
  })

  it('rejects every signature if the tolerance is not a number', () => {
    expect(verifySignature(header, body, secret, nowMs + 301_000, Number.NaN)).toBe(false)
  })
})
