import { describe, expect, it } from 'vitest'
import type { Failure } from '../../src/letter/letter.ts'
import {
  applyRules,
  unknownPlaceholder,
  type FingerprintMatch,
} from '../../src/policy/fingerprint-rules.ts'
import { fingerprint } from '../../src/policy/fingerprint.ts'

const at = '2025-01-01T00:00:00.000Z'
const timeout: Failure = {
  name: 'TimeoutError',
  message: 'The gateway did not answer',
  code: 'ETIMEDOUT',
  causes: [{ name: 'SocketError', message: 'hang up', status: 502, causes: [], at }],
  at,
}

describe('applyRules', () => {
  it.each<[FingerprintMatch, boolean]>([
    [{ queue: 'orders' }, true],
    [{ queue: 'mail' }, false],
    [{ name: 'TimeoutError' }, true],
    [{ name: 'SocketError' }, true],
    [{ name: 'Timeout' }, false],
    [{ code: 'ETIMEDOUT' }, true],
    [{ message: 'GATEWAY' }, true],
    [{ message: /gateway/g }, true],
    [{ message: /^gateway/ }, false],
    [{ queue: 'orders', name: 'TimeoutError', message: 'answer' }, true],
    [{ name: 'SocketError', code: 'ETIMEDOUT' }, false],
  ])('matches %o: %s', (match, expected) => {
    const rules = [{ match, fingerprint: 'x' }]
    // Twice, because a global pattern has a state.
    for (const result of [1, 2].map(() => applyRules(rules, 'orders', timeout)))
      expect(result).toBe(expected ? 'x' : undefined)
  })

  it('uses the first rule that matches, with the values of what matched', () => {
    const rules = [
      { match: { queue: 'mail' }, fingerprint: 'mail' },
      { match: { name: 'SocketError' }, fingerprint: '{queue}/{name}/{code}/{status}' },
      { match: { queue: 'orders' }, fingerprint: 'orders' },
    ]
    expect(applyRules(rules, 'orders', timeout)).toBe('orders/SocketError/none/502')
    expect(fingerprint('orders', timeout, rules)).toEqual({
      value: 'orders/SocketError/none/502',
      version: 1,
      used: ['rule'],
    })
    expect(fingerprint('other', { ...timeout, causes: [] }, rules).value).toMatch(/^v1-/)
  })

  it('fills in values as they are, and bounds the result', () => {
    const rules = [{ match: { queue: '{name}' }, fingerprint: '{queue}{name}' }]
    expect(applyRules(rules, '{name}', { ...timeout, name: '$&' })).toBe('{name}$&')
    const long = [{ match: { queue: 'q' }, fingerprint: '{name}' }]
    expect(applyRules(long, 'q', { ...timeout, name: 'x'.repeat(1000) })).toHaveLength(200)
  })
})

describe('unknownPlaceholder', () => {
  it.each([
    ['plain', undefined],
    ['{queue}-{name}-{code}-{status}', undefined],
    ['{queue}-{host}', 'host'],
    ['{}', ''],
  ])('finds in %j: %j', (template, expected) => {
    expect(unknownPlaceholder(template)).toBe(expected)
  })
})
