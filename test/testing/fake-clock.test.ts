import { describe, expect, it } from 'vitest'
import { sleep } from '../../src/clock/clock.ts'
import { fakeClock } from '../../src/testing/index.ts'

describe('fakeClock', () => {
  it('does not move until it is advanced', async () => {
    const clock = fakeClock(1000)
    expect([clock.now(), clock.mono()]).toEqual([1000, 0])
    await clock.advance(250)
    expect([clock.now(), clock.mono()]).toEqual([1250, 250])
  })

  it('fires timers in order, each at its own time', async () => {
    const clock = fakeClock(0)
    const fired: [string, number][] = []
    for (const [name, ms] of [
      ['c', 30],
      ['a', 10],
      ['b1', 20],
      ['b2', 20],
      ['never', 51],
    ] as const)
      clock.timer(ms, () => fired.push([name, clock.now()]))
    await clock.advance(50)
    expect(fired).toEqual([
      ['a', 10],
      ['b1', 20],
      ['b2', 20],
      ['c', 30],
    ])
    expect(clock.pending()).toBe(1)
  })

  it('fires timers that promises set during an advance', async () => {
    const clock = fakeClock(0)
    const woke: number[] = []
    const walk = async (): Promise<void> => {
      for (let step = 0; step < 5; step++) {
        await sleep(clock, 10)
        await Promise.resolve().then(() => Promise.resolve())
        woke.push(clock.now())
      }
    }
    const walking = walk()
    await clock.advance(50)
    await walking
    expect(woke).toEqual([10, 20, 30, 40, 50])
  })

  it('fires a timer without delay at the next advance, even by 0', async () => {
    const clock = fakeClock()
    let fired = 0
    clock.timer(0, () => fired++)
    clock.timer(-5, () => fired++)
    expect(fired).toBe(0)
    await clock.advance(0)
    expect(fired).toBe(2)
  })

  it('does not fire a cancelled timer, even if another timer cancelled it', async () => {
    const clock = fakeClock()
    const fired: string[] = []
    const cancel = clock.timer(10, () => fired.push('cancelled'))
    clock.timer(5, cancel)
    cancel()
    cancel()
    expect(clock.pending()).toBe(1)
    await clock.advance(20)
    expect(fired).toEqual([])
  })

  it('supports timers years ahead', async () => {
    const clock = fakeClock(0)
    const year = 365 * 86_400_000
    let firedAt = 0
    clock.timer(year, () => (firedAt = clock.now()))
    await clock.advance(2 * year)
    expect(firedAt).toBe(year)
  })

  it('lets the wall clock jump without moving timers or monotonic time', async () => {
    const clock = fakeClock(1000)
    let fired = 0
    clock.timer(10, () => fired++)
    clock.set(5_000_000)
    expect([clock.now(), clock.mono(), fired]).toEqual([5_000_000, 0, 0])
    clock.set(0)
    await clock.advance(10)
    expect([clock.now(), clock.mono(), fired]).toEqual([10, 10, 1])
  })

  it('returns the same random numbers for the same seed only', () => {
    const draws = (seed: number): number[] => {
      const clock = fakeClock(0, seed)
      return Array.from({ length: 20 }, () => clock.random())
    }
    expect(draws(7)).toEqual(draws(7))
    expect(draws(7)).not.toEqual(draws(8))
    expect(draws(7).every((draw) => draw >= 0 && draw < 1)).toBe(true)
    expect(new Set(draws(7)).size).toBe(20)
  })

  it('creates the same ids for the same seed, without changing its random numbers', () => {
    const [one, two, quiet] = [fakeClock(0, 7), fakeClock(0, 7), fakeClock(0, 7)]
    const ids = Array.from({ length: 500 }, () => one.id())
    expect(Array.from({ length: 500 }, () => two.id())).toEqual(ids)
    expect(ids.toSorted()).toEqual(ids)
    expect(new Set(ids).size).toBe(500)
    expect(one.random()).toBe(quiet.random())
  })

  it('creates version 7 ids from its own time', async () => {
    const clock = fakeClock(0x0123456789ab)
    expect(clock.id()).toMatch(/^01234567-89ab-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })
})
