import { describe, expect, it } from 'vitest'
import { addressOf } from '../../../src/stores/redis/address.ts'

describe('addressOf', () => {
  it.each([
    ['redis://localhost', { nodes: [{ host: 'localhost', port: 6379 }], tls: false, database: 0 }],
    ['redis://', { nodes: [{ host: 'localhost', port: 6379 }], tls: false, database: 0 }],
    ['rediss://h:1/3?prefix=x', { nodes: [{ host: 'h', port: 1 }], tls: true, database: 3 }],
    [
      'redis://a:1,b:2,c',
      {
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
          { host: 'c', port: 6379 },
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
  ])('reads %s', (url, address) => {
    expect(addressOf(url)).toEqual(address)
  })

  it.each([
    'http://h',
    'redis:h',
    'redis://h:99999',
    'redis://h/name',
    'redis://h:x',
    'redis://a b:%zz@h',
  ])('refuses %s without repeating it', (url) => {
    expect(() => addressOf(url)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })
})
