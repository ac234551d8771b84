import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  enoughActive,
  observe,
  rememberedDays,
  silenceLimitMs,
  silentMs,
  type Silence,
} from '../../src/policy/silence.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const limits = { forMs: hourMs, learnMs: 7 * dayMs, everyMs: minuteMs }

interface Watch {
  silence: Silence | undefined
  /** Minutes at which an alert was raised. */
  raised: number[]
}

/** Observes a queue every minute for some days. `captures` tells whether it captured then. */
function watch(
  days: number,
  captures: (minute: number) => boolean,
  isUp: (minute: number) => boolean = () => true,
): Watch {
  let silence: Silence | undefined
  let count = 0
  let hasAlert = false
  const raised: number[] = []
  for (let minute = 0; minute < days * 24 * 60; minute++) {
    if (captures(minute)) count++
    if (!isUp(minute)) continue
    const atMs = minute * minuteMs
    const before = silence?.count
    silence = observe(silence, count, atMs, limits, hasAlert)
    const isSilent = silentMs(silence, atMs) > silenceLimitMs(silence, limits)
    if (hasAlert && count !== before) hasAlert = false
    else if (!hasAlert && isSilent) {
      hasAlert = true
      raised.push(minute)
    }
  }
  return { silence, raised }
}

const minutesPerDay = 24 * 60
const dayOf = (minute: number): number => Math.floor(minute / minutesPerDay)
const hourOf = (minute: number): number => Math.floor((minute % minutesPerDay) / 60)

describe('silence', () => {
  it('is raised when a busy queue stops', () => {
    const stop = 8 * minutesPerDay
    const { raised } = watch(9, (minute) => minute < stop && minute % 5 === 0)
    expect(raised).toHaveLength(1)
    expect(raised[0]! - stop).toBeGreaterThanOrEqual(55)
    expect(raised[0]! - stop).toBeLessThanOrEqual(70)
  })

  it.each<[string, (minute: number) => boolean]>([
    ['never captured', () => false],
    ['captures once a day', (minute) => minute % minutesPerDay === 0],
    ['captures in office hours only', (minute) => hourOf(minute) >= 9 && hourOf(minute) < 17],
    [
      'rests at weekends',
      (minute) => dayOf(minute) % 7 < 5 && hourOf(minute) >= 9 && hourOf(minute) < 17,
    ],
  ])('is not raised for a queue that %s', (_, captures) => {
    expect(watch(28, captures).raised).toEqual([])
  })

  it('is raised for a queue of office hours that stays silent on a day of work', () => {
    const captures = (minute: number): boolean =>
      dayOf(minute) % 7 < 5 && hourOf(minute) >= 9 && hourOf(minute) < 17
    const { raised } = watch(30, (minute) => dayOf(minute) < 21 && captures(minute))
    expect(raised).toHaveLength(1)
  })

  it('is not raised before the queue was observed for learnMs', () => {
    const { raised } = watch(7, (minute) => minute < minutesPerDay)
    expect(raised).toEqual([])
  })

  it('does not learn a pause that raised an alert', () => {
    const outage = (minute: number): boolean => [9, 11].includes(dayOf(minute))
    const { raised } = watch(13, (minute) => !outage(minute) && minute % 5 === 0)
    expect(raised.map(dayOf)).toEqual([9, 11])
  })

  it('does not count time in which nobody observed the queue', () => {
    const isUp = (minute: number): boolean => dayOf(minute) !== 9
    const captures = (minute: number): boolean => isUp(minute) && minute % 5 === 0
    expect(watch(11, captures, isUp).raised).toEqual([])
  })

  it('starts again when the count falls, because the store is another one', () => {
    const { silence } = watch(8, (minute) => minute % 5 === 0)
    const reset = observe(silence, 1, 8 * dayMs, limits, false)
    expect(reset).toMatchObject({ count: 1, active: 0, sinceMs: 8 * dayMs })
    expect(silenceLimitMs(reset, limits)).toBe(Infinity)
  })

  it('is not raised within twice the longest pause that it has seen', () => {
    const pause = fc.integer({ min: 1, max: 600 })
    fc.assert(
      fc.property(fc.array(pause, { minLength: 60, maxLength: 200 }), (pauses) => {
        const minutes = new Set<number>()
        // The longest pause comes first and again every week, as long as pauses are remembered.
        const longest = Math.max(...pauses)
        let at = longest
        for (let index = 0; at < 20 * minutesPerDay; index++) {
          minutes.add(at)
          at += index % 40 === 0 ? longest : pauses[index % pauses.length]!
        }
        const last = Math.max(...minutes)
        const { raised } = watch(20, (minute) => minutes.has(minute))
        expect(raised.filter((minute) => minute < last)).toEqual([])
      }),
      { numRuns: 20 },
    )
  })

  it('keeps a bounded state, and at most one per step', () => {
    let silence: Silence | undefined
    let writes = 0
    for (let minute = 0; minute < 40 * minutesPerDay; minute++) {
      const next = observe(silence, minute, minute * minuteMs, limits, false)
      if (next !== silence) writes++
      silence = next
    }
    expect(silence!.pauses.length).toBeLessThanOrEqual(rememberedDays)
    expect(silence!.active).toBe(enoughActive)
    expect(writes).toBeLessThanOrEqual((40 * minutesPerDay) / 5 + 1)
  })
})
