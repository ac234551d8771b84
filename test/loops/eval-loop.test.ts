import { describe, expect, it } from 'vitest'
import { EvalLoop, type EvalLoopOptions } from '../../src/loops/eval-loop.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { sleep } from '../../src/clock/clock.ts'
import { aLoop, type LoopBench } from './a-loop.ts'

type Options = EvalLoopOptions<number, number | undefined, number>

function evaluating(bench: LoopBench, options: Partial<Options> = {}): EvalLoop {
  const { clock, replies, requests, onEvent } = bench
  const loop = new MainLoop<number, number | undefined>({
    requests: replies,
    clock,
    process: async (input) => {
      await sleep(clock, 250)
      if (input < 0) throw new RangeError('no root')
      return input === 0 ? undefined : Math.sqrt(input)
    },
  })
  const evals = new EvalLoop<number, number | undefined, number>({
    requests,
    clock,
    onEvent,
    loop,
    evaluator: (output, expected) => output === expected,
    ...options,
  })
  void evals.run()
  return evals
}

const ask = (bench: LoopBench, sample: unknown): Promise<string> =>
  bench.requests.send({ sample, experiment: 'e-1' }, { replyTo: 'replies' })

describe('EvalLoop', () => {
  it('runs a sample through the work of another loop and replies with its score and latency', async () => {
    const bench = aLoop()
    evaluating(bench)
    await ask(bench, { id: 's-1', input: 9, expected: 3 })
    await bench.clock.advance(250)
    expect(await bench.take(bench.replies)).toEqual([
      {
        sampleId: 's-1',
        experiment: 'e-1',
        score: { value: 1, passed: true },
        latencyMs: 250,
      },
    ])
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it.each([
    [0.4, { value: 0.4, passed: false }],
    [0.5, { value: 0.5, passed: true }],
    [
      { value: 0.2, passed: true, reason: 'close enough' },
      { value: 0.2, passed: true, reason: 'close enough' },
    ],
  ])('accepts %j as a score', async (given, score) => {
    const bench = aLoop()
    evaluating(bench, { evaluator: () => given })
    await ask(bench, { id: 's-1', input: 9 })
    await bench.clock.advance(250)
    expect(await bench.take(bench.replies)).toMatchObject([{ score }])
  })

  it('fails a sample without output, not the loop', async () => {
    const bench = aLoop()
    evaluating(bench, { dlq: { to: bench.dlq } })
    await ask(bench, { id: 's-1', input: 0 })
    await bench.clock.advance(250)
    expect(await bench.take(bench.replies)).toMatchObject([
      { score: { value: 0, passed: false }, error: 'there is no output' },
    ])
    expect(bench.eventsOf('message-failed')).toEqual([])
  })

  it('retries a failed sample, and replies with a failed score once it is dead-lettered', async () => {
    const bench = aLoop()
    evaluating(bench, { dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 2 }) } })
    await ask(bench, { id: 's-1', input: -1 })
    await bench.clock.advance(250)
    expect(await bench.replies.approximateCount()).toBe(0)
    await bench.clock.advance(60_250)
    expect(await bench.dlq.approximateCount()).toBe(1)
    expect(await bench.take(bench.replies)).toMatchObject([
      {
        sampleId: 's-1',
        score: { value: 0, passed: false },
        error: 'Dead-lettered after 2 attempts: no root',
      },
    ])
  })

  it('fails when the evaluator throws, returns no score, or there is no sample', async () => {
    const bench = aLoop()
    evaluating(bench, {
      evaluator: (output) => {
        if (output === 3) throw new Error('cannot judge')
        return undefined as never
      },
    })
    await ask(bench, { id: 's-1', input: 9 })
    await ask(bench, { id: 's-2', input: 4 })
    await ask(bench, 'no sample')
    await bench.clock.advance(1000)
    expect(bench.eventsOf('message-failed')).toHaveLength(3)
    expect(await bench.replies.approximateCount()).toBe(0)
  })

  it('fails when the work returns a failure, without calling the evaluator', async () => {
    const bench = aLoop()
    let evaluations = 0
    evaluating(bench, {
      loop: { process: () => ({ ok: false, error: new Error('half') }) as never },
      evaluator: () => {
        evaluations++
        return true
      },
    })
    await ask(bench, { id: 's-1', input: 9 })
    await bench.settle()
    expect(bench.eventsOf('message-failed')).toHaveLength(1)
    expect(evaluations).toBe(0)
  })

  it('has a heartbeat, runs and stops like other loops', async () => {
    const bench = aLoop()
    const loop = evaluating(bench)
    await bench.clock.advance(25_000)
    expect(loop.running).toBe(true)
    expect(loop.heartbeat.elapsedMs()).toBe(5000)
    expect(loop.problems()).toEqual([])
    expect(await loop.shutdown()).toBe(true)
    expect(loop.running).toBe(false)
  })
})
