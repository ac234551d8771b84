import { describe, expect, it } from 'vitest'
import { addressOf, settingsIn } from '../../../src/mailboxes/redis/address.ts'

describe('addressOf', () => {
  it.each([
    ['redis://', ['localhost:6379'], 'redis://localhost:6379'],
    ['redis://a', ['a:6379'], 'redis://a:6379'],
    ['rediss://u:p%40w@a:1/2?prefix=x', ['a:1'], 'rediss://u:p%40w@a:1/2'],
    ['redis://a:1,b,[::1]:3', ['a:1', 'b:6379', '[::1]:3'], 'redis://a:1'],
  ])('reads %s', (url, nodes, first) => {
    const address = addressOf(url)
    expect(address.nodes).toEqual(nodes)
    expect(address.urlOf(address.nodes[0]!)).toBe(first)
  })

  it.each(['http://a', 'redis://a/x', 'redis://a,,b', 'redis://a:99999', 'redis://u:hush@a:b'])(
    'refuses %s without telling a secret',
    (url) => {
      expect(() => addressOf(url)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
      expect(() => addressOf(url)).not.toThrow(/hush/)
    },
  )
})

describe('settingsIn', () => {
  it('reads what stands behind the question mark', () => {
    expect(settingsIn('redis://a')).toEqual({})
    expect(
      settingsIn('redis://a/0?prefix=p&allowVolatile=true&retentionSeconds=0&maxMessages=7'),
    ).toEqual({ prefix: 'p', allowVolatile: true, retentionSeconds: 0, maxMessages: 7 })
  })

  it.each(['redis://a?colour=red', 'redis://a?allowVolatile=1'])('refuses %s', (url) => {
    expect(() => settingsIn(url)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })
})
