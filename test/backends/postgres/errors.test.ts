import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import type { Tenant } from '../../../src/backends/postgres/tenant.ts'
import { isCollision, isLost, toRedriveError } from '../../../src/backends/postgres/errors.ts'

const tenant: Tenant = { noun: 'mailbox', unavailable: 'MAILBOX_UNAVAILABLE' }
const withCode = (code: string): Error => Object.assign(new Error('said'), { code })

describe('toRedriveError', () => {
  it.each([
    ['42P01', 'a table is gone: open the mailbox again to make it'],
    ['57P01', 'the server is shutting down or starting up'],
    ['28P01', 'the server refused the user or the password: correct the URL'],
    ['42601', 'the mailbox failed'],
    ['EPIPE', 'the server cannot be reached, or did not answer in time'],
    ['ECONNRESET', 'the server cannot be reached, or did not answer in time'],
  ])('says of %s what it means for the tenant', (code, what) => {
    const cause = withCode(code)
    expect(toRedriveError(cause, 'postgres h/d', tenant)).toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
      message: `postgres h/d: ${what} (said)`,
      cause,
    })
  })

  it('tells what a failure gathers when it has no words of its own', () => {
    const gathered = new AggregateError([new Error('one'), new Error('two')], '')
    expect(toRedriveError(gathered, 'p', tenant).message).toMatch(/\(one, two\)$/)
  })

  it('leaves errors of ours as they are', () => {
    const error = new RedriveError('CLOSED', 'closed')
    expect(toRedriveError(error, 'p', tenant)).toBe(error)
  })
})

describe('isCollision', () => {
  it('holds for what another transaction was the cause of', () => {
    expect(['40001', '40P01', '55P03'].map(withCode).every(isCollision)).toBe(true)
    expect(isCollision(withCode('57014'))).toBe(false)
  })
})

describe('isLost', () => {
  it('holds where nobody knows how far the server got, and not for what is wrong with ourselves', () => {
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
