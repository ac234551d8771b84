import { expect } from 'vitest'
import { nextTurn, systemClock, type Clock } from '../../src/clock/clock.ts'

/** The real clock, and the timers that somebody still waits for. */
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

/** A tap that is stopped while it starts, on such a clock, has nothing left that would go on. */
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
