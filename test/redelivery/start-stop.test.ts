import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sleep } from '../../src/clock/clock.ts'
import { immediate } from '../../src/policy/backoff.ts'
import { aQueue, refused } from '../a-queue.ts'
import { atDepth } from '../depth.ts'

const letters = 12

type Step = { call: 'start' } | { call: 'stop'; drainMs: number } | { call: 'wait'; ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ call: fc.constant('start' as const) }),
  fc.record({ call: fc.constant('stop' as const), drainMs: fc.constantFrom(0, 5, 1000) }),
  fc.record({ call: fc.constant('wait' as const), ms: fc.nat(80) }),
)

describe('redelivery and sweep', () => {
  it('end in the last requested state after any starts and stops, and run each letter once at a time', async () => {
    const run = async (steps: Step[]): Promise<void> => {
      const { dlq, clock, store } = await aQueue({ backoff: immediate(), alerts: false })
      const active = new Set<string>()
      const overlapping: string[] = []
      dlq.handle('a', async ({ letter, signal }) => {
        // An error thrown here would only fail the run.
        if (active.has(letter.id)) overlapping.push(letter.id)
        active.add(letter.id)
        await sleep(clock, 1 + Math.floor(clock.random() * 60), signal)
        active.delete(letter.id)
        signal.throwIfAborted()
      })
      const failure = { operation: { type: 'a' }, error: refused() }
      await dlq.enqueueAll(Array.from({ length: letters }, () => failure))
      const stops: Promise<void>[] = []
      let isWanted = false
      for (const one of steps) {
        if (one.call === 'start') dlq.start()
        else if (one.call === 'stop') stops.push(dlq.stop({ drainMs: one.drainMs }))
        else await clock.advance(one.ms)
        if (one.call !== 'wait') isWanted = one.call === 'start'
      }
      await clock.advance(20_000)
      await Promise.all(stops)
      const { states, processor } = await dlq.stats()
      expect(overlapping).toEqual([])
      expect(processor.running).toBe(isWanted)
      expect((await store.records.get('worker', 'worker-1')) !== undefined).toBe(isWanted)
      expect(states.pending + states.resolved).toBe(letters)
      if (isWanted) expect(states.resolved).toBe(letters)
      const closed = dlq.close()
      await clock.advance(20_000)
      await closed
      expect(clock.pending()).toBe(0)
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 20 }), run), {
      numRuns: atDepth(25, 60),
    })
  })
})
