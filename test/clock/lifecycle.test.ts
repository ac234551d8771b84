import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sleep } from '../../src/clock/clock.ts'
import { Lifecycle } from '../../src/clock/lifecycle.ts'
import { fakeClock } from '../../src/testing/index.ts'

/** A component whose stop takes a while, and which counts how many of it run. */
function component(stopMs: () => number) {
  const clock = fakeClock()
  const seen = { running: 0, most: 0, starts: 0, stops: 0, args: [] as string[] }
  const lifecycle = new Lifecycle<[string]>({
    start: () => {
      seen.starts += 1
      seen.running += 1
      seen.most = Math.max(seen.most, seen.running)
    },
    stop: async (arg) => {
      seen.args.push(arg)
      await sleep(clock, stopMs())
      seen.stops += 1
      seen.running -= 1
    },
  })
  return { clock, seen, lifecycle }
}

describe('Lifecycle', () => {
  it('never runs twice at a time, ends in the last requested state, and resolves every stop', async () => {
    type Step = { call: 'start' } | { call: 'stop' } | { call: 'wait'; ms: number }
    const step: fc.Arbitrary<Step> = fc.oneof(
      fc.record({ call: fc.constant('start' as const) }),
      fc.record({ call: fc.constant('stop' as const) }),
      fc.record({ call: fc.constant('wait' as const), ms: fc.nat(30) }),
    )
    const run = async (steps: Step[]) => {
      const { clock, seen, lifecycle } = component(() => Math.floor(clock.random() * 20))
      const stops: Promise<void>[] = []
      let wanted = false
      for (const one of steps) {
        if (one.call === 'wait') {
          await clock.advance(one.ms)
          continue
        }
        wanted = one.call === 'start'
        if (one.call === 'start') lifecycle.start()
        else stops.push(lifecycle.stop('any'))
        expect(lifecycle.wanted).toBe(wanted)
      }
      await clock.advance(1000)
      await Promise.all(stops)
      expect(seen.most).toBeLessThanOrEqual(1)
      expect(seen.running).toBe(wanted ? 1 : 0)
      expect(lifecycle.started).toBe(wanted)
      expect(seen.starts - seen.stops).toBe(seen.running)
      expect(clock.pending()).toBe(0)
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), run), { numRuns: 150 })
  })

  it('makes concurrent stops wait for the first one, with its arguments', async () => {
    const { clock, seen, lifecycle } = component(() => 10)
    lifecycle.start()
    let ended = 0
    for (const name of ['first', 'second']) void lifecycle.stop(name).then(() => ended++)
    await clock.advance(9)
    expect(ended).toBe(0)
    await clock.advance(1)
    expect(ended).toBe(2)
    expect(seen).toMatchObject({ stops: 1, args: ['first'] })
  })

  it('starts again after the stop in progress when start is called meanwhile', async () => {
    const { clock, seen, lifecycle } = component(() => 10)
    lifecycle.start()
    void lifecycle.stop('any')
    lifecycle.start()
    await clock.advance(9)
    expect(seen.starts).toBe(1)
    await clock.advance(1)
    expect(seen).toMatchObject({ starts: 2, running: 1 })
  })

  it('resolves a stop at once when it was never started', async () => {
    const { seen, lifecycle } = component(() => 10)
    await lifecycle.stop('any')
    expect(seen.stops).toBe(0)
  })
})
