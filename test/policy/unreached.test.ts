import { describe, expect, it } from 'vitest'
import { toFailure } from '../../src/letter/failure.ts'
import { isUnreached } from '../../src/policy/unreached.ts'

const at = '2026-01-01T00:00:00.000Z'
const error = (message: string, more: object = {}): Error => Object.assign(new Error(message), more)

describe('isUnreached', () => {
  it.each<[string, unknown]>([
    ['a refused connection', error('connect ECONNREFUSED ::1:443', { code: 'ECONNREFUSED' })],
    ['a name that is not found', error('getaddrinfo ENOTFOUND x', { code: 'ENOTFOUND' })],
    ['a cause', new TypeError('fetch failed', { cause: error('x', { code: 'EHOSTUNREACH' }) })],
    ['a timeout of the connection', error('connect ETIMEDOUT 10.0.0.1:443', { code: 'ETIMEDOUT' })],
    ['a wrapped message', new Error('charge failed: connect ECONNREFUSED 10.0.0.1:443')],
    ['503', error('Service Unavailable', { status: 503 })],
    ['502', error('Bad Gateway', { response: { status: 502 } })],
    ['gRPC that is unavailable', error('14 UNAVAILABLE: No connection', { code: 14 })],
    [
      'a breaker of the caller',
      Object.assign(new Error('open'), { name: 'CircuitBreakerOpenError' }),
    ],
    ['a mailbox that is away', error('away', { code: 'MAILBOX_UNAVAILABLE' })],
  ])('is true for %s', (_what, thrown) => {
    expect(isUnreached(toFailure(thrown, at))).toBe(true)
  })

  it.each<[string, unknown]>([
    ['a reset connection', error('read ECONNRESET', { code: 'ECONNRESET' })],
    ['a timeout of the answer', error('read ETIMEDOUT', { code: 'ETIMEDOUT' })],
    ['500', error('Internal Server Error', { status: 500 })],
    ['504', error('Gateway Timeout', { status: 504 })],
    ['429', error('Too Many Requests', { status: 429 })],
    ['404', error('user not found', { status: 404 })],
    ['a bug', new TypeError('x is not a function')],
    ['nothing', undefined],
  ])('is false for %s', (_what, thrown) => {
    expect(isUnreached(toFailure(thrown, at))).toBe(false)
  })
})
