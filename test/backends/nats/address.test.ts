import { describe, expect, it } from 'vitest'
import { connectionTo, placeOf, settingsIn } from '../../../src/backends/nats/address.ts'

describe('connectionTo', () => {
  it.each([
    ['nats://localhost:4222', { servers: ['localhost:4222'] }],
    ['nats://a:1,b:2/?prefix=x', { servers: ['a:1', 'b:2'] }],
    ['tls://a', { servers: ['a'], tls: {} }],
    ['nats://me:p%40ss@a:1', { servers: ['a:1'], user: 'me', pass: 'p@ss' }],
    ['nats://token@a:1', { servers: ['a:1'], token: 'token' }],
  ])('reads %s', (url, options) => {
    expect(connectionTo(url)).toEqual(options)
  })

  it.each(['redis://a', 'nats://', 'nats:a', 'nats://a/b/c'])('refuses %s', (url) => {
    expect(() => connectionTo(url)).toThrow(/NATS URL/)
  })
})

describe('placeOf', () => {
  it('returns the hosts without secrets', () => {
    expect(placeOf('nats://me:hunter2@a:1,b:2?prefix=x')).toBe('a:1,b:2')
  })
})

describe('settingsIn', () => {
  it('parses the parameters after the question mark', () => {
    expect(settingsIn('nats://a?prefix=x&replicas=3&maxMessages=10&dedupeSeconds=60')).toEqual({
      prefix: 'x',
      replicas: 3,
      maxMessages: 10,
      dedupeSeconds: 60,
    })
  })
})
