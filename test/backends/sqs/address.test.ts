import { describe, expect, it } from 'vitest'
import { addressOf, queueNameOf, urlBeside } from '../../../src/backends/sqs/address.ts'

describe('addressOf', () => {
  it.each([
    ['sqs://localhost:4566', { endpoint: 'http://localhost:4566' }],
    [
      'sqs://localhost:4566/orders?region=eu-west-1',
      { endpoint: 'http://localhost:4566', queue: 'orders', region: 'eu-west-1' },
    ],
    ['sqs:///orders.fifo?region=eu-west-1', { queue: 'orders.fifo', region: 'eu-west-1' }],
    [
      'https://sqs.eu-west-1.amazonaws.com/123456789012/orders',
      {
        queueUrl: 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders',
        queue: 'orders',
        region: 'eu-west-1',
      },
    ],
  ])('reads %s', (url, address) => {
    expect(addressOf(url)).toEqual(address)
  })

  it.each([
    'orders',
    'amqp://a/b',
    'sqs://a/b/c',
    'sqs://a?colour=red',
    'https://a',
    'sqs://a/%zz',
  ])('refuses %s', (url) => {
    expect(() => addressOf(url)).toThrow(/SQS URL/)
  })

  it('rejects secrets without repeating them', () => {
    expect(() => addressOf('sqs://key:hunter2@a/b')).toThrow(
      /^(?!.*hunter2).*must not contain secrets/,
    )
  })
})

describe('urlBeside', () => {
  it.each([
    ['sqs://localhost:4566/orders?region=a', { endpoint: 'http://localhost:4566', region: 'a' }],
    ['sqs://localhost:4566', { endpoint: 'http://localhost:4566' }],
    ['sqs:///orders?region=a', { region: 'a' }],
    [
      'https://sqs.eu-west-1.amazonaws.com/123456789012/orders',
      {
        queueUrl: 'https://sqs.eu-west-1.amazonaws.com/123456789012/replies',
        queue: 'replies',
        region: 'eu-west-1',
      },
    ],
  ])('derives the URL of the requested queue from %s', (url, address) => {
    expect(addressOf(urlBeside(url, 'replies'))).toEqual(address)
  })
})

describe('queueNameOf', () => {
  it('leaves valid names unchanged', () => {
    for (const name of ['orders', 'order_events-2', 'orders.fifo', 'x'.repeat(75)])
      expect(queueNameOf(name)).toBe(name)
  })

  it('creates distinct valid names for all other names', () => {
    const names = ['a.b', 'a/b', 'a b', 'é', 'x'.repeat(200), `${'x'.repeat(199)}y`, 'a b.fifo']
    const made = names.map(queueNameOf)
    for (const name of made) expect(name).toMatch(/^[A-Za-z0-9_-]{1,75}(\.fifo)?$/)
    expect(new Set(made).size).toBe(names.length)
    expect(queueNameOf('a b.fifo').endsWith('.fifo')).toBe(true)
  })

  it('distinguishes a name that looks like a hashed one', () => {
    const made = queueNameOf('a.b')
    expect(queueNameOf(made)).not.toBe(made)
  })
})
