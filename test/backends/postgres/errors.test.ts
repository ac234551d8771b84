import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import type { Tenant } from '../../../src/backends/postgres/tenant.ts'
import { isCollision, isLost, toRedriveError } from '../../../src/backends/postgres/errors.ts'

const tenant: Tenant = { noun: 'mailbox', unavailable: 'MAILBOX_UNAVAILABLE' }
const withCode = (code: string): Error => Object.assign(new Error('message'), { code })

describe('toRedriveError', () => {
  it.each([
    ['42P01', 'a table was dropped: open the mailbox again to create it'],
    ['57P01', 'the server is shutting down or starting up'],
    ['28P01', 'the server rejected the user or the password: correct the URL'],
    ['42601', 'the mailbox failed'],
    ['EPIPE', 'the server cannot be reached, or did not answer in time'],
    ['ECONNRESET', 'the server cannot be reached, or did not answer in time'],
  ])('explains %s in terms of the tenant', (code, what) => {
    const cause = withCode(code)
    expect(toRedriveError(cause, 'postgres h/d', tenant)).toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
      message: `postgres h/d: ${what} (message)`,
      cause,
    })
  })

  it('uses the messages of nested errors when an error has none of its own', () => {
    const nested = new AggregateError([new Error('one'), new Error('two')], '')
    expect(toRedriveError(nested, 'p', tenant).message).toMatch(/\(one, two\)$/)
  })

  it('reports a value that cannot be stored as INVALID_INPUT', () => {
    expect(toRedriveError(withCode('22021'), 'p', tenant)).toMatchObject({
      code: 'INVALID_INPUT',
      message: 'p: a value cannot be stored (message)',
    })
  })

  it('returns a RedriveError unchanged', () => {
    const error = new RedriveError('CLOSED', 'closed')
    expect(toRedriveError(error, 'p', tenant)).toBe(error)
  })
})

describe('isCollision', () => {
  it('is true for errors caused by another transaction', () => {
    expect(['40001', '40P01', '55P03'].map(withCode).every(isCollision)).toBe(true)
    expect(isCollision(withCode('57014'))).toBe(false)
  })
})

describe('isLost', () => {
  it('is true for errors of the connection, not for invalid values, bugs and our own errors', () => {
    expect([withCode('57P01'), withCode('08006'), new Error('cut')].every(isLost)).toBe(true)
    const known = [
      withCode('22001'),
      new TypeError('x'),
      new RangeError('x'),
      new RedriveError('CLOSED', 'x'),
    ]
    expect(known.some(isLost)).toBe(false)
  })
})
