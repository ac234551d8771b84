import { describe, expect, it } from 'vitest'
import { connectionTo, placeOf, settingsIn } from '../../../src/backends/kafka/address.ts'

describe('connectionTo', () => {
  it('names hosts, with the usual port where none is said', () => {
    expect(connectionTo('127.0.0.1:29092')).toEqual({ bootstrapBrokers: ['127.0.0.1:29092'] })
    expect(connectionTo('kafka://a,b:1/').bootstrapBrokers).toEqual(['a:9092', 'b:1'])
  })

  it('has credentials, and TLS where the scheme says so', () => {
    expect(connectionTo('kafkas://me:p%40:ss@a:1?sasl=scram-sha-512')).toEqual({
      bootstrapBrokers: ['a:1'],
      tls: {},
      sasl: { mechanism: 'SCRAM-SHA-512', username: 'me', password: 'p@:ss' },
    })
    expect(connectionTo('kafka://me:x@a').sasl?.mechanism).toBe('PLAIN')
  })

  it('refuses what is no address, and says no secret', () => {
    for (const url of ['http://a', '', 'kafka://me:hunter2@a?sasl=magic'])
      expect(() => connectionTo(url)).toThrow(
        expect.objectContaining({
          code: 'INVALID_INPUT',
          message: expect.not.stringContaining('hunter2'),
        }),
      )
  })
})

describe('settingsIn', () => {
  it('reads settings, and refuses unknown parameters by name', () => {
    expect(settingsIn('kafka://a?prefix=x.&partitions=6&replicas=3')).toEqual({
      prefix: 'x.',
      partitions: 6,
      replicas: 3,
    })
    expect(() => settingsIn('kafka://a?partition=6')).toThrow(/did you mean "partitions"/)
  })
})

describe('placeOf', () => {
  it('shows the hosts alone', () => expect(placeOf('kafka://me:secret@a:1,b')).toBe('a:1,b'))
})
