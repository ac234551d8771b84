import { describe, expect, it } from 'vitest'
import { ObserverHub } from '../../../src/observer.ts'
import type { FlowSettings } from '../../../src/policy/flow-control.ts'
import { understand } from '../../../src/policy/judge.ts'
import { FlowControl } from '../../../src/redelivery/flow/flow-control.ts'
import type { RunResult } from '../../../src/redelivery/run-result.ts'
import { WorkerRegistry } from '../../../src/redelivery/worker-registry.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { aQueue, refused, timedOut } from '../../a-queue.ts'

function setUp(
  queues: Record<string, FlowSettings & { dependency?: string }>,
  dependencies: Record<string, FlowSettings> = {},
) {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const registry = new WorkerRegistry({ store, clock, worker: 'me', sweepMs: 5000 })
  for (const queue of Object.keys(queues)) registry.addQueue(queue)
  const flow = new FlowControl({
    clock,
    hub: new ObserverHub(),
    registry,
    maxConcurrent: 8,
    queueFlow: (queue) => queues[queue] ?? {},
    dependencyFlow: (dependency) => dependencies[dependency] ?? {},
  })
  /** The groups in a stable order, each with its capacity. */
  const groups = (): [string, number][] =>
    flow
      .groups(Object.keys(queues))
      .map(({ queues: members, capacity }): [string, number] => [members.join(), capacity()])
      .sort(([one], [other]) => one.localeCompare(other))
  const failed = (error: Error, queue: string): RunResult => ({
    kind: 'failed',
    report: { ok: false, error },
    ...understand(error, queue, new Date(clock.now()).toISOString()),
  })
  /** Runs a new letter of the queue to this result. */
  const run = (queue: string, result: RunResult): RunResult => {
    const letter = aLetter({ queue, state: 'retrying' })
    flow.begin(letter, 0)
    return flow.end(letter, result, 0)
  }
  return { clock, store, registry, flow, groups, failed, run }
}

describe('FlowControl', () => {
  it('groups unlimited queues together, and limited ones by the limit that they share', () => {
    const { groups } = setUp(
      {
        a: {},
        b: { dependency: 'free' },
        c: { dependency: 'api' },
        d: { dependency: 'api' },
        e: { concurrency: { max: 2 } },
        f: { concurrency: { max: 5 }, dependency: 'api' },
      },
      { api: { concurrency: { max: 3 } } },
    )
    expect(groups()).toEqual([
      ['a,b', Infinity],
      ['c,d', 3],
      ['e', 2],
      ['f', 3],
    ])
  })

  it('puts another group first each time', () => {
    const { flow } = setUp({ a: {}, b: { concurrency: { max: 1 } } })
    const first = () => flow.groups(['a', 'b'])[0]!.queues
    expect([first(), first(), first()]).toEqual([['a'], ['b'], ['a']])
  })

  it('counts letters in flight against the limits of the queue and of its dependency', () => {
    const { flow, groups } = setUp(
      { a: { dependency: 'api' }, b: { dependency: 'api' } },
      { api: { concurrency: { max: 2 } } },
    )
    const letter = aLetter({ queue: 'a', state: 'retrying' })
    flow.begin(letter, 0)
    expect(groups()).toEqual([['a,b', 1]])
    flow.end(letter, { kind: 'released' }, 0)
    expect(groups()).toEqual([['a,b', 2]])
  })

  it('shares a budget among the live workers of its queues', async () => {
    const { clock, store, registry, flow } = setUp({ a: { budget: { perSecond: 4 } } })
    const capacity = (): number => flow.groups(['a'])[0]!.capacity()
    capacity()
    await clock.advance(1000)
    expect(capacity()).toBe(4)
    await store.records.put('worker', 'other', { queues: ['a'] })
    await registry.heartbeat()
    expect(capacity()).toBe(2)
  })

  it('defers failures of an outage, and not those that the letter causes', () => {
    const { failed, run } = setUp({ a: {} })
    expect(run('a', failed(refused(), 'a'))).toMatchObject({ kind: 'failed', deferMs: 0 })
    const forbidden = Object.assign(new Error('Forbidden'), { status: 403 })
    expect(run('a', failed(forbidden, 'a'))).not.toHaveProperty('deferMs')
    expect(run('a', failed(timedOut(), 'a'))).not.toHaveProperty('deferMs')
  })

  it('opens the breaker of a dependency for all its queues, and reports until when', () => {
    const off = { breaker: false, concurrency: false } as const
    const { clock, failed, run, flow, groups } = setUp(
      { a: { dependency: 'api', ...off }, b: { dependency: 'api', ...off } },
      { api: { breaker: { failures: 2, openMs: 1000 } } },
    )
    for (const queue of ['a', 'b']) run(queue, failed(timedOut(), queue))
    expect(groups()).toEqual([['a,b', 0]])
    expect(flow.waitMs(['a'])).toBe(1000)
    const until = new Date(clock.now() + 1000).toISOString()
    expect(flow.status().at(-1)).toMatchObject({ name: 'api', state: 'open', until, inFlight: 0 })
  })

  it('is reported by dlq.flowControl() for each queue and dependency', async () => {
    const { dlq, clock } = await aQueue({ queues: { a: { dependency: 'api' } } })
    dlq.handle('a', () => {})
    dlq.start()
    await clock.advance(0)
    expect(dlq.flowControl()).toEqual([
      { kind: 'queue', name: 'a', state: 'closed', inFlight: 0 },
      { kind: 'dependency', name: 'api', state: 'closed', inFlight: 0 },
    ])
    await dlq.close()
  })
})
