import { describe, expect, it } from 'vitest'
import { Repeater } from '../../src/clock/repeater.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { deferred } from '../a-queue.ts'

describe('Repeater', () => {
  it('runs the first round at once and each further one after the delay that a round returns', async () => {
    const clock = fakeClock()
    const at: number[] = []
    const repeater = new Repeater({
      clock,
      round: async () => {
        at.push(clock.mono())
        return at.length * 100
      },
    })
    repeater.start()
    await clock.advance(700)
    expect(at).toEqual([0, 100, 300, 600])
    await repeater.stop()
    expect(clock.pending()).toBe(0)
  })

  it('waits for the round in progress when it stops, and reports whether it starts again', async () => {
    const clock = fakeClock()
    const rounds: ReturnType<typeof deferred<number>>[] = []
    const restarting: boolean[] = []
    const repeater = new Repeater({
      clock,
      round: () => {
        rounds.push(deferred<number>())
        return rounds.at(-1)!.promise
      },
      onStop: async (again) => void restarting.push(again),
    })
    repeater.start()
    const stopped = repeater.stop()
    repeater.start()
    await clock.advance(1000)
    expect(rounds).toHaveLength(1)
    rounds[0]!.resolve(10)
    await stopped
    expect({ rounds: rounds.length, restarting }).toEqual({ rounds: 2, restarting: [true] })
    rounds[1]!.resolve(10)
    await repeater.stop()
    expect(restarting).toEqual([true, false])
  })
})
