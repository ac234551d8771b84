import { describe, expect, it } from 'vitest'
import { delayQueueOf, delayQueuesOf, queueOf } from '../../../src/backends/rabbitmq/names.ts'

describe('queueOf', () => {
  it('is the name itself if it is valid in RabbitMQ', () => {
    for (const name of ['orders', 'or ders', '東京 💌', 'x'.repeat(200)])
      expect(queueOf(name)).toBe(name)
  })

  it('is a hash if the name is invalid or reserved', () => {
    const odd = [
      'amq.orders',
      'redrive.delay.1000.a',
      'redrive.name.a',
      '東'.repeat(200),
      '東'.repeat(199),
    ]
    const queues = odd.map(queueOf)
    expect(new Set(queues).size).toBe(odd.length)
    for (const queue of queues) expect(queue).toMatch(/^redrive\.name\.[0-9a-f]{64}$/)
  })
})

describe('delayQueueOf', () => {
  it('holds delays that differ by at most a quarter, or a second', () => {
    const tops = delayQueuesOf('q').map(({ topMs }) => topMs)
    for (const [at, top] of tops.entries())
      expect(top - (tops[at - 1] ?? 0)).toBeLessThanOrEqual(Math.max(1000, top / 4))
  })

  it('has a queue for every delay up to twelve hours, and only some dozens', () => {
    const queues = delayQueuesOf('q')
    expect(queues.length).toBeLessThan(70)
    for (const delayMs of [1, 999, 1000, 1001, 60_000, 899_999.5, 43_200_000]) {
      const queue = delayQueueOf('q', delayMs)
      expect(queue.topMs).toBeGreaterThanOrEqual(delayMs)
      expect(queues).toContainEqual(queue)
    }
  })

  it('is a valid name in RabbitMQ', () => {
    const { name } = delayQueueOf(queueOf('x'.repeat(200)), 43_200_000)
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255)
  })
})
