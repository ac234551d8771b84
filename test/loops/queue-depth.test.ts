import { describe, expect, it } from 'vitest'
import { measureMailbox, reportDepth, type QueueDepth } from '../../src/loops/queue-depth.ts'
import { createEmit } from '../../src/loops/events.ts'
import { deferred } from '../a-queue.ts'
import { aLoop, type LoopBench } from './a-loop.ts'

const reporting = (bench: LoopBench, measure: () => Promise<QueueDepth>): (() => void) =>
  reportDepth({
    measure,
    name: 'requests-dlq',
    everyMs: 60_000,
    clock: bench.clock,
    emit: createEmit(bench),
  })

describe('reportDepth', () => {
  it('reports at once and then periodically, with the age of the oldest message', async () => {
    const bench = aLoop()
    await bench.dlq.send({})
    reporting(bench, () => measureMailbox(bench.dlq))
    await bench.clock.advance(30_000)
    await bench.dlq.send({})
    await bench.clock.advance(90_000)
    expect(bench.eventsOf('depth')).toEqual([
      { type: 'depth', mailbox: 'requests-dlq', depth: 1, oldestAgeSeconds: 0 },
      { type: 'depth', mailbox: 'requests-dlq', depth: 2, oldestAgeSeconds: 60 },
      { type: 'depth', mailbox: 'requests-dlq', depth: 2, oldestAgeSeconds: 120 },
    ])
  })

  it('omits the age if there is no message, or the broker cannot browse', async () => {
    const bench = aLoop()
    expect(await measureMailbox(bench.dlq)).toEqual({ name: 'requests-dlq', depth: 0 })
    await bench.dlq.send({})
    const unbrowsable = Object.create(bench.dlq, {
      name: { value: 'requests-dlq' },
      approximateCount: { value: async () => 1 },
      browse: { value: undefined },
    }) as typeof bench.dlq
    expect(await measureMailbox(unbrowsable)).toEqual({ name: 'requests-dlq', depth: 1 })
  })

  it('reports a failed measurement, and continues', async () => {
    const bench = aLoop()
    let away = true
    reporting(bench, () => {
      if (away) throw new Error('away')
      return measureMailbox(bench.dlq)
    })
    await bench.settle()
    expect(bench.eventsOf('error')).toMatchObject([{ during: 'counting requests-dlq' }])
    away = false
    await bench.clock.advance(60_000)
    expect(bench.eventsOf('depth')).toHaveLength(1)
  })

  it('never measures twice at a time, and reports nothing once it is stopped', async () => {
    const bench = aLoop()
    const slow = deferred<QueueDepth>()
    let measured = 0
    const stop = reporting(bench, () => {
      measured++
      return slow.promise
    })
    await bench.clock.advance(600_000)
    expect(measured).toBe(1)
    stop()
    slow.resolve({ name: 'requests-dlq', depth: 1 })
    await bench.clock.advance(600_000)
    expect(bench.events).toEqual([])
    expect(bench.clock.pending()).toBe(0)
  })
})
