import { describe, expect, it } from 'vitest'
import { addressOf, settingsIn, formatNode } from '../../../src/backends/redis/address.ts'

describe('addressOf', () => {
  it.each([
    ['redis://localhost', { nodes: [{ host: 'localhost', port: 6379 }], tls: false, database: 0 }],
    ['redis://', { nodes: [{ host: 'localhost', port: 6379 }], tls: false, database: 0 }],
    ['rediss://h:1/3?prefix=x', { nodes: [{ host: 'h', port: 1 }], tls: true, database: 3 }],
    ['REDISS://h:1/', { nodes: [{ host: 'h', port: 1 }], tls: true, database: 0 }],
    [
      'redis://a:1,b:2,c,[::1]:3',
      {
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
          { host: 'c', port: 6379 },
          { host: '::1', port: 3 },
        ],
        tls: false,
        database: 0,
      },
    ],
    [
      'redis://me:p%40ss@[::1]:7/0',
      {
        nodes: [{ host: '::1', port: 7 }],
        tls: false,
        database: 0,
        username: 'me',
        password: 'p@ss',
      },
    ],
    [
      'redis://:hush@h',
      { nodes: [{ host: 'h', port: 6379 }], tls: false, database: 0, password: 'hush' },
    ],
    [
      'redis://me:a:b@h',
      {
        nodes: [{ host: 'h', port: 6379 }],
        tls: false,
        database: 0,
        username: 'me',
        password: 'a:b',
      },
    ],
  ])('reads %s', (url, address) => {
    expect(addressOf(url)).toEqual(address)
  })

  it.each([
    'http://u:hush@h',
    'redis:h',
    'redis://u:hush@h:99999',
    'redis://u:hush@h/name',
    'redis://u:hush@h/1e1',
    'redis://u:hush@h:x',
    'redis://u:hush@a,,b',
    'redis://a b:%zz-hush@h',
    'redis://u:x@hush@h',
    'redis://u:hush@a b',
  ])('rejects %s without showing a secret', (url) => {
    expect(() => addressOf(url)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
    expect(() => addressOf(url)).not.toThrow(/hush/)
  })
})

describe('formatNode', () => {
  it('puts an IPv6 host into brackets', () => {
    expect(formatNode({ host: '::1', port: 7 })).toBe('[::1]:7')
    expect(formatNode({ host: 'h', port: 7 })).toBe('h:7')
  })
})

describe('settingsIn', () => {
  const numbers = ['retentionSeconds', 'maxMessages'] as const

  it('reads the query of the URL', () => {
    expect(settingsIn('redis://a', numbers)).toEqual({})
    expect(
      settingsIn(
        'redis://a/0?prefix=p&allowVolatile=true&retentionSeconds=0&maxMessages=7',
        numbers,
      ),
    ).toEqual({ prefix: 'p', allowVolatile: true, retentionSeconds: 0, maxMessages: 7 })
  })

  it.each(['redis://a?colour=red', 'redis://a?allowVolatile=1', 'redis://a?timeoutMs=1'])(
    'rejects %s',
    (url) => {
      expect(() => settingsIn(url, numbers)).toThrow(
        expect.objectContaining({ code: 'INVALID_INPUT' }),
      )
    },
  )
})
