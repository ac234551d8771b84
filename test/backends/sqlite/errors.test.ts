import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import {
  breaksConnection,
  FlushFailed,
  toRedriveError,
  type Tenant,
} from '../../../src/backends/sqlite/errors.ts'

const tenant: Tenant = {
  noun: 'mailbox',
  unavailable: 'MAILBOX_UNAVAILABLE',
  whenBusy: 'somebody else writes',
}
const withCode = (errcode: number): Error => Object.assign(new Error('detail'), { errcode })

describe('toRedriveError', () => {
  it.each([
    [5, 'MAILBOX_UNAVAILABLE', /somebody else writes \(detail\)$/],
    [261, 'MAILBOX_UNAVAILABLE', /somebody else writes \(detail\)$/],
    [13, 'MAILBOX_UNAVAILABLE', /the disk is full/],
    [18, 'TOO_LARGE', /larger than 1 GB/],
    [26, 'STORE_UNSAFE', /not a SQLite database/],
    [99, 'MAILBOX_UNAVAILABLE', /the mailbox failed \(detail\)$/],
  ])('explains %i in terms of the tenant', (errcode, code, message) => {
    const translated = toRedriveError(withCode(errcode), '/f', tenant)
    expect(translated.code).toBe(code)
    expect(translated.message).toMatch(/^sqlite \/f: /)
    expect(translated.message).toMatch(message)
  })

  it.each([
    ['ENOENT', /the folder of the file does not exist: create it, or correct the path/],
    ['ENOTDIR', /a part of the path is not a folder: correct the path/],
    ['EISDIR', /the path is a folder: give the path of a file/],
    ['EACCES', /may not use the file/],
    ['EPERM', /may not use the file/],
    ['EROFS', /read-only/],
    ['ENOSPC', /the disk is full/],
    ['EMFILE', /too many files are open/],
    ['ENAMETOOLONG', /too long/],
  ])('names the fix for the system error %s', (code, message) => {
    const translated = toRedriveError(Object.assign(new Error('detail'), { code }), '/f', tenant)
    expect(translated.code).toBe('MAILBOX_UNAVAILABLE')
    expect(translated.message).toMatch(message)
    expect(translated.message).toMatch(/ \(detail\)$/)
  })

  it('reports that an unflushed write may or may not be stored', () => {
    const { code, message } = toRedriveError(new FlushFailed(new Error('EIO')), '/f', tenant)
    expect(code).toBe('MAILBOX_UNAVAILABLE')
    expect(message).toMatch(/may or may not be stored: see the system log \(EIO\)$/)
  })

  it('returns a RedriveError unchanged', () => {
    const error = new RedriveError('CLOSED', 'closed')
    expect(toRedriveError(error, '/f', tenant)).toEqual({ code: 'CLOSED', message: 'closed' })
  })
})

describe('breaksConnection', () => {
  it('is true for every kind of disk error', () => {
    expect([10, 1034, 14].map(withCode).every(breaksConnection)).toBe(true)
    expect(breaksConnection(new FlushFailed('EIO'))).toBe(true)
    expect([5, 13].map(withCode).some(breaksConnection)).toBe(false)
  })
})
