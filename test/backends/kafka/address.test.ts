import { describe, expect, it } from 'vitest'
import {
  formatHosts,
  parseConnection,
  parseUrlSettings,
} from '../../../src/backends/kafka/address.ts'

describe('parseConnection', () => {
  it('reads hosts and adds the default port', () => {
    expect(parseConnection('127.0.0.1:29092')).toEqual({ bootstrapBrokers: ['127.0.0.1:29092'] })
    expect(parseConnection('kafka://a,b:1/').bootstrapBrokers).toEqual(['a:9092', 'b:1'])
  })

  it('reads credentials and uses TLS for kafkas', () => {
    expect(parseConnection('kafkas://me:p%40:ss@a:1?sasl=scram-sha-512')).toEqual({
      bootstrapBrokers: ['a:1'],
      tls: {},
      sasl: { mechanism: 'SCRAM-SHA-512', username: 'me', password: 'p@:ss' },
    })
    expect(parseConnection('kafka://me:x@a').sasl?.mechanism).toBe('PLAIN')
  })

  it('rejects other URLs without showing a password', () => {
    for (const url of ['http://a', '', 'kafka://me:hunter2@a?sasl=magic'])
      expect(() => parseConnection(url)).toThrow(
        expect.objectContaining({
          code: 'INVALID_INPUT',
          message: expect.not.stringContaining('hunter2'),
        }),
      )
  })
})

describe('parseUrlSettings', () => {
  it('reads settings and rejects unknown parameters by name', () => {
    expect(parseUrlSettings('kafka://a?prefix=x.&partitions=6&replicas=3')).toEqual({
      prefix: 'x.',
      partitions: 6,
      replicas: 3,
    })
    expect(() => parseUrlSettings('kafka://a?partition=6')).toThrow(/did you mean "partitions"/)
  })
})

describe('formatHosts', () => {
  it('returns the hosts without credentials', () =>
    expect(formatHosts('kafka://me:secret@a:1,b')).toBe('a:1,b'))
})
