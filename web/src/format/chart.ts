import { formatClock, formatDate, type TimeZone } from './time.ts'

type Values = readonly (number | null)[]

/**
 * The sums of the series up to each one, the first series at the bottom. Where no series has a
 * value, the sums are gaps.
 */
export function stackValues(series: readonly Values[]): (number | null)[][] {
  const sums: (number | null)[][] = []
  for (const [index, values] of series.entries()) {
    const below = sums[index - 1]
    sums.push(
      values.map((value, at) => {
        if (series.every((one) => (one[at] ?? null) === null)) return null
        return (below?.[at] ?? 0) + (value ?? 0)
      }),
    )
  }
  return sums
}

/** The places of values that have no value next to them. */
export function findIsolated(values: Values): number[] {
  const hasValue = (at: number): boolean => (values[at] ?? null) !== null
  return values.flatMap((_, at) =>
    hasValue(at) && !hasValue(at - 1) && !hasValue(at + 1) ? [at] : [],
  )
}

const dayMs = 86_400_000

/** Labels of a time axis: the clock, and the date where a day begins or if the steps are days. */
export function formatTicks(timesMs: readonly number[], stepMs: number, zone: TimeZone): string[] {
  return timesMs.map((ms) => {
    const date = new Date(ms)
    const clock = formatClock(date, zone).slice(0, 5)
    return stepMs >= dayMs || clock === '00:00' ? formatDate(date, zone).slice(5) : clock
  })
}
