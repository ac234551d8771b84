import { expect, it } from 'vitest'
import { DLQConsumer } from '../../src/loops/dlq-consumer.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { metricsOf } from '../../src/loops/metrics.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { aLoop } from './a-loop.ts'

it('all seven metrics come from what happens, when it happens', async () => {
  const bench = aLoop()
  const loop = new MainLoop({
    ...bench.parts,
    process: () => {
      throw new TypeError('x')
    },
    dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
  })
  void loop.run()
  await bench.requests.send({ n: 1 })
  await bench.requests.send({ n: 2 })
  await bench.settle()
  const names = (): string[] =>
    bench.events.flatMap(metricsOf).map(({ name, value }) => `${name} ${value}`)
  expect(names()).toEqual(['dlq.messages.sent 1', 'dlq.messages.sent 1'])
  bench.events.length = 0

  await bench.clock.advance(90_000)
  let seen = 0
  const consumer = new DLQConsumer({
    mailbox: bench.dlq,
    clock: bench.clock,
    onEvent: bench.onEvent,
    handler: () => ({ action: seen++ === 0 ? 'replayed' : 'discarded' }),
  })
  void consumer.run()
  await bench.settle()
  expect(names()).toEqual([
    'dlq.messages.processed 1',
    'dlq.messages.replayed 1',
    'dlq.message.age_seconds 90',
    'dlq.processing.duration_ms 0',
    'dlq.queue.depth 1',
    'dlq.messages.processed 1',
    'dlq.messages.discarded 1',
    'dlq.message.age_seconds 90',
    'dlq.processing.duration_ms 0',
  ])
})

it('metrics are labelled by what people look for', () => {
  expect(
    metricsOf({
      type: 'dead-lettered',
      mailbox: 'requests',
      messageId: 'm-1',
      deliveries: 5,
      errorType: 'TypeError',
      errorMessage: 'x',
      destination: 'requests-dlq',
    }),
  ).toEqual([
    {
      name: 'dlq.messages.sent',
      kind: 'counter',
      value: 1,
      tags: { source: 'requests', destination: 'requests-dlq', errorType: 'TypeError' },
    },
  ])
  expect(metricsOf({ type: 'trouble', during: 'x', error: 'y' })).toEqual([])
})
