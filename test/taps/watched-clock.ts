import { systemClock, type Clock } from '../../src/clock.ts'

/** The real clock, and the timers that somebody still waits for. */
export function watchedClock(): { clock: Clock; pending: ReadonlySet<object> } {
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
