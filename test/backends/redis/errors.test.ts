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
    ['NOPERM no', 'the user lacks permissions that a mailbox needs: see the page'],
    ['ERR BUSY x', 'a script is blocking the server: try again'],
    ['constructor', 'the server failed'],
  ])('explains "%s" in terms of the tenant', (message, what) => {
    const cause = new Error(message)
    expect(toRedriveError(cause, 'h:1', tenant)).toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
      message: `redis h:1: ${what} (${message})`,
      cause,
    })
  })

  it('returns a RedriveError unchanged', () => {
    const error = new RedriveError('CLOSED', 'the redis mailbox is closed')
    expect(toRedriveError(error, 'h:1', tenant)).toBe(error)
  })
})
