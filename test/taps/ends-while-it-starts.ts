import { expect } from 'vitest'
import { nextTurn, systemClock, type Clock } from '../../src/clock/clock.ts'

/** The system clock, with a list of its pending timers. */
function watchedClock(): { clock: Clock; pending: ReadonlySet<object> } {
  const pending = new Set<object>()
  const timer: Clock['timer'] = (ms, fire) => {
    const one = {}
    pending.add(one)
    const cancel = systemClock.timer(ms, () => {
      pending.delete(one)
      fire()
    })
    return () => {
      pending.delete(one)
      cancel()
    }
  }
  return { clock: { ...systemClock, timer }, pending }
}

/** Stops a tap during its start, and expects that no timer is left. */
export async function endsWhileItStarts(
  open: (clock: Clock) => { start(): Promise<void>; stop(): Promise<void> },
): Promise<void> {
  const { clock, pending } = watchedClock()
  const tap = open(clock)
  const starting = tap.start()
  await tap.stop()
  await starting
  await nextTurn()
  expect(pending.size).toBe(0)
  await tap.stop()
}
