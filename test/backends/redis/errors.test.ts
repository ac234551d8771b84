import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import type { Tenant } from '../../../src/backends/redis/tenant.ts'
import { toRedriveError } from '../../../src/backends/redis/errors.ts'

const tenant: Tenant = {
  noun: 'mailbox',
  unavailable: 'MAILBOX_UNAVAILABLE',
  keeps: 'messages',
  page: 'the page',
  tooFewReplicas: 'the master has it',
}

describe('toRedriveError', () => {
  it.each([
    ['MOVED 3999 h:1', "the mailbox's slot has moved to another node: try again"],
    ['NOPERM no', 'this user may not do what a mailbox must: see the page for what it needs'],
    ['ERR BUSY x', 'a script keeps the server busy: try again'],
    ['constructor', 'the server failed'],
  ])('says of "%s" what it means for the tenant', (message, what) => {
    const cause = new Error(message)
    expect(toRedriveError(cause, 'h:1', tenant)).toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
      message: `redis h:1: ${what} (${message})`,
      cause,
    })
  })

  it('leaves errors of ours as they are', () => {
    const error = new RedriveError('CLOSED', 'the redis mailbox is closed')
    expect(toRedriveError(error, 'h:1', tenant)).toBe(error)
  })
})
