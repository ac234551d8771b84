import { describe, expect, it } from 'vitest'
import { EvalLoop, type EvalLoopOptions } from '../../src/loops/eval-loop.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { deferred } from '../a-queue.ts'
import { aLoop, faulty, type LoopBench } from '../loops/a-loop.ts'
import { clause, row } from './rows.ts'
import { after, away, counts, deadOf, fails } from './run-loop.ts'

describe(row('M7'), () => {
  const request = (id: string): object => ({
    sample: { id, input: { q: id }, expected: `answer to ${id}` },
    experiment: 'baseline',
    requestId: `r-${id}`,
  })
  type Options = EvalLoopOptions<{ q: string }, string, string>
  const startEvalLoop = (
    bench: LoopBench,
    process: (input: { q: string }) => Promise<string> | string,
    options: Partial<Options> = {},
  ): EvalLoop => {
    const loop = new EvalLoop<{ q: string }, string, string>({
      ...bench.parts,
      loop: { process },
      evaluator: (output, expected) => output === expected,
      dlq: { to: bench.dlq, policy: after(3) },
      ...options,
    })
    void loop.run()
    return loop
  }

  describe(clause('M7', 'EvalLoop mirrors it: sample, evaluator, score, latency'), () => {
    it('runs a sample, scores its output, and replies with score and latency', async () => {
      const bench = aLoop()
      startEvalLoop(bench, async ({ q }) => {
        const slow = deferred()
        bench.clock.timer(250, slow.resolve)
        await slow.promise
        return `answer to ${q}`
      })
      await bench.requests.send(request('s-1'), { replyTo: 'replies' })
      await bench.clock.advance(250)
      expect(await bench.take(bench.replies)).toEqual([
        {
          sampleId: 's-1',
          experiment: 'baseline',
          score: { value: 1, passed: true },
          latencyMs: 250,
        },
      ])
      expect(await counts(bench)).toEqual([0, 0, 0])
    })
  })

  describe(clause('M7', 'a dead-lettered eval replies with a failed score'), () => {
    it('no reply below the threshold; at it, a failed score', async () => {
      const bench = aLoop()
      startEvalLoop(bench, fails)
      await bench.requests.send(request('s-1'), { replyTo: 'replies' })
      await bench.clock.advance(60_000)
      expect(await counts(bench)).toEqual([1, 0, 0])
      await bench.clock.advance(120_000)
      expect(await counts(bench)).toEqual([0, 1, 1])
      expect(await bench.take(bench.replies)).toMatchObject([
        {
          sampleId: 's-1',
          experiment: 'baseline',
          score: { value: 0, passed: false },
          error: 'Dead-lettered after 3 attempts: no such order',
        },
      ])
      expect(await deadOf(bench.dlq)).toMatchObject([
        { requestId: 'r-s-1', replyTo: 'replies', deliveryCount: 3 },
      ])
    })
  })

  describe(clause('M7', 'a dead-lettered eval replies with a failed score'), () => {
    it('dead-letters without a reply address, with one that fails, and by the error, and keeps the trace', async () => {
      const bench = aLoop()
      const source = faulty(bench.requests)
      source.faults.reply = away()
      const policy = new DLQPolicy({ includeErrors: [TypeError] })
      startEvalLoop(bench, fails, { requests: source.mailbox, dlq: { to: bench.dlq, policy } })
      const trace = '0af7651916cd43dd8448eb211c80319c'
      await bench.requests.send(request('s-1'))
      await bench.requests.send(request('s-2'), {
        replyTo: 'replies',
        headers: { traceparent: `00-${trace}-b7ad6b7169203331-01` },
      })
      await bench.settle()
      expect(await counts(bench)).toEqual([0, 2, 0])
      expect((await deadOf(bench.dlq)).map(({ traceId }) => traceId)).toEqual([undefined, trace])
    })
  })

  describe(clause('M7', 'EvalLoop mirrors it: sample, evaluator, score, latency'), () => {
    it('a custom policy decides', async () => {
      class AtOnce extends DLQPolicy {
        override shouldDeadLetter(): boolean {
          return true
        }
      }
      const bench = aLoop()
      startEvalLoop(bench, fails, { dlq: { to: bench.dlq, policy: new AtOnce() } })
      await bench.requests.send(request('s-1'))
      await bench.settle()
      expect(await counts(bench)).toEqual([0, 1, 0])
    })
  })

  describe(clause('M7', 'EvalLoop mirrors it: sample, evaluator, score, latency'), () => {
    it('work without output is a failed score and no dead letter', async () => {
      const bench = aLoop()
      startEvalLoop(bench, () => undefined as unknown as string)
      await bench.requests.send(request('s-1'), { replyTo: 'replies' })
      await bench.settle()
      expect(await bench.take(bench.replies)).toMatchObject([
        { score: { value: 0, passed: false } },
      ])
      expect(await counts(bench)).toEqual([0, 0, 0])
    })
  })

  describe(clause('M7', 'EvalLoop mirrors it: sample, evaluator, score, latency'), () => {
    it('without a dead letter queue: retried, or replied to with a failed score, by withoutPolicy', async () => {
      const bench = aLoop()
      const options = { requests: bench.requests, clock: bench.clock }
      const parts = { ...options, loop: { process: fails }, evaluator: () => true }
      const retrying = new EvalLoop(parts)
      const run = retrying.run()
      await bench.requests.send(request('s-1'), { replyTo: 'replies' })
      await bench.clock.advance(3_600_000)
      expect(await counts(bench)).toEqual([1, 0, 0])
      await retrying.shutdown()
      await run
      void new EvalLoop({ ...parts, withoutPolicy: 'reply-and-ack' }).run()
      await bench.clock.advance(900_000)
      expect(await bench.take(bench.replies)).toMatchObject([
        { error: 'no such order', score: { passed: false } },
      ])
    })
  })

  describe(clause('M7', 'EvalLoop mirrors it: sample, evaluator, score, latency'), () => {
    it('beats, runs and stops as other loops do', async () => {
      const bench = aLoop()
      const loop = startEvalLoop(bench, () => 'x')
      await bench.clock.advance(60_000)
      expect(loop.running).toBe(true)
      expect(loop.heartbeat.elapsedMs()).toBeLessThanOrEqual(20_000)
      expect(await loop.shutdown()).toBe(true)
      expect(loop.running).toBe(false)
    })
  })
})
