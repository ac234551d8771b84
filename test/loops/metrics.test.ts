import { expect, it } from 'vitest'
import { mailboxDestination } from '../../src/loops/destination.ts'
import { DLQConsumer } from '../../src/loops/dlq-consumer.ts'
import { alertHandler } from '../../src/loops/handlers/alert.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { metricsOf } from '../../src/loops/metrics.ts'
import type { Metric } from '../../src/observers/metrics/metric.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { aQueue, refused } from '../a-queue.ts'
import { aDeadMessage } from './a-dead-message.ts'
import { aLoop } from './a-loop.ts'

it('emits all seven metrics when the events happen', async () => {
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
  const ofQueue = (name: string): boolean => name.startsWith('dlq.queue.')
  expect(names().filter(ofQueue)).toEqual(['dlq.queue.depth 2', 'dlq.queue.oldest_age_seconds 90'])
  expect(names().filter((name) => !ofQueue(name))).toEqual([
    'dlq.messages.processed 1',
    'dlq.messages.replayed 1',
    'dlq.message.age_seconds 90',
    'dlq.processing.duration_ms 0',
    'dlq.messages.processed 1',
    'dlq.messages.discarded 1',
    'dlq.message.age_seconds 90',
    'dlq.processing.duration_ms 0',
  ])
})

it('labels metrics with the expected tags', () => {
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
  expect(metricsOf({ type: 'error', during: 'x', error: 'y' })).toEqual([])
})

it('reports depth and the age of the oldest message without traffic', async () => {
  const bench = aLoop()
  const { dlq: mailbox, clock, onEvent } = bench
  // Nobody receives it, and it has no handler.
  const idle = new DLQConsumer({ mailbox, clock, onEvent, handler: () => {} })
  await mailboxDestination(mailbox, { delaySeconds: 3600 }).keep(aDeadMessage(), undefined)
  void idle.run()
  await clock.advance(120_000)
  const named = (name: string): number[] =>
    bench.events
      .flatMap(metricsOf)
      .filter((metric) => metric.name === name)
      .map(({ value }) => value)
  expect(named('dlq.queue.depth')).toEqual([1, 1, 1])
  expect(named('dlq.queue.oldest_age_seconds')).toEqual([0, 60, 120])
})

it('counts dlq.messages by source and error type for the alert handler', async () => {
  const bench = aLoop()
  const { dlq: mailbox, clock, onEvent } = bench
  const handler = alertHandler({ notify: () => {} })
  void new DLQConsumer({ mailbox, clock, onEvent, handler }).run()
  await mailboxDestination(mailbox).keep(aDeadMessage(), undefined)
  await bench.settle()
  const counted = bench.events.flatMap(metricsOf).filter(({ name }) => name === 'dlq.messages')
  expect(counted).toEqual([
    {
      name: 'dlq.messages',
      kind: 'counter',
      value: 1,
      tags: { source: 'requests', errorType: 'TypeError' },
    },
  ])
})

it('emits all seven metrics when dead messages are stored as letters', async () => {
  const { dlq: queue, clock } = await aQueue()
  const bench = aLoop()
  const metrics: Metric[] = []
  const onEvent = (event: Parameters<typeof metricsOf>[0]): void =>
    void metrics.push(...metricsOf(event))
  queue.on('*', onEvent)
  const taken = (): string[] =>
    metrics.splice(0).map(({ name, value, tags }) => `${name} ${value} ${tags['action'] ?? ''}`)
  void new MainLoop({
    requests: bench.requests,
    clock,
    onEvent,
    process: () => Promise.reject(refused()),
    dlq: new DLQPolicy({ mailbox: queue.deadLetters(), maxDeliveryCount: 1 }),
  }).run()
  await clock.advance(0)
  expect(taken()).toEqual(['dlq.queue.depth 0 '])
  for (const n of [1, 2]) await bench.requests.send({ n })
  await clock.advance(0)
  await bench.settle()
  expect(taken()).toEqual(['dlq.messages.sent 1 ', 'dlq.messages.sent 1 '])
  await clock.advance(60_000)
  expect(taken()).toEqual(['dlq.queue.depth 2 ', 'dlq.queue.oldest_age_seconds 60 '])

  const { items } = await queue.find({})
  const [first, second] = items.map(({ id }) => id)
  await queue.park(second!, 'ops')
  await queue.review(second!, { by: 'ops', decision: 'discard' })
  expect(taken()).toEqual([
    'dlq.messages.processed 1 discarded',
    'dlq.messages.discarded 1 discarded',
    'dlq.message.age_seconds 60 discarded',
  ])
  queue.handle('requests', () => {})
  await queue.retry(first!, 'ops')
  queue.start()
  await clock.advance(30_000)
  expect(taken()).toEqual([
    'dlq.messages.processed 1 processed',
    'dlq.message.age_seconds 60 processed',
    'dlq.processing.duration_ms 0 processed',
  ])
  await queue.stop()
  await queue.close()
})

it('emits nothing for letters of other sources', async () => {
  const { dlq: queue, events } = await aQueue()
  const letter = await queue.enqueue({ type: 'orders' }, refused())
  await queue.resolve(letter.id, 'ops')
  expect(events.length).toBeGreaterThan(1)
  expect(events.flatMap(metricsOf)).toEqual([])
  await queue.close()
})

it('counts expired messages by mailbox', () => {
  expect(metricsOf({ type: 'messages-expired', mailbox: 'requests-dlq', count: 3 })).toEqual([
    {
      name: 'mailbox.messages.expired',
      kind: 'counter',
      value: 3,
      tags: { mailbox: 'requests-dlq' },
    },
  ])
})

it.each(['open', 'half-open', 'closed'] as const)('shows a breaker that is %s', (state) => {
  const value = state === 'closed' ? 0 : 1
  expect(metricsOf({ type: 'loop-breaker', mailbox: 'requests', state })).toEqual([
    { name: 'mailbox.breaker.open', kind: 'gauge', value, tags: { mailbox: 'requests' } },
  ])
})

it('counts deferred messages by mailbox', () => {
  const facts = { mailbox: 'requests', messageId: 'm', deliveries: 1 }
  const how = { during: 'process', error: refused(), delaySeconds: 30 } as const
  expect(metricsOf({ type: 'message-deferred', ...facts, ...how })).toEqual([
    { name: 'mailbox.messages.deferred', kind: 'counter', value: 1, tags: { mailbox: 'requests' } },
  ])
})
