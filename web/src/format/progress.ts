/** Numbers of letters of a bulk action by outcome. */
export interface Progress {
  pending: number
  waiting: number
  succeeded: number
  failed: number
  skipped: number
  indeterminate: number
}

/** Letters whose outcome is known. */
export function countDone({ succeeded, failed, skipped, indeterminate }: Progress): number {
  return succeeded + failed + skipped + indeterminate
}

/** How many letters were done at a time. */
export interface ProgressSample {
  atMs: number
  done: number
}

/** A rate is that of the last half minute: what was fast an hour ago says nothing. */
const windowMs = 30_000

/** The samples with a new one. Those that no rate needs are dropped. */
export function addSample(
  samples: readonly ProgressSample[],
  sample: ProgressSample,
): readonly ProgressSample[] {
  const last = samples.at(-1)
  if (last && sample.atMs <= last.atMs) return samples
  const recent = samples.filter(({ atMs }) => sample.atMs - atMs <= windowMs)
  return [...recent, sample]
}

/** Letters per second over the samples. Undefined: too little is known. */
export function rateOf(samples: readonly ProgressSample[]): number | undefined {
  const [first] = samples
  const last = samples.at(-1)
  if (!first || !last || last.atMs === first.atMs) return undefined
  return ((last.done - first.done) * 1000) / (last.atMs - first.atMs)
}

/** How long the rest takes at this rate. Undefined: nobody knows. */
export function remainingMs(left: number, rate: number | undefined): number | undefined {
  return rate === undefined || rate <= 0 ? undefined : (left / rate) * 1000
}

/** `12 letters/s`, `3 letters/min` */
export function formatRate(rate: number): string {
  if (rate >= 1) return `${rate >= 10 ? Math.round(rate) : Number(rate.toFixed(1))} letters/s`
  return `${Number((rate * 60).toFixed(1))} letters/min`
}

/** Messages of failures that differ only in numbers and ids are the same cause. */
export function countCauses(errors: readonly string[]): { cause: string; count: number }[] {
  const counts = new Map<string, { cause: string; count: number }>()
  for (const error of errors) {
    const key = error.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/gi, '#')
    const known = counts.get(key)
    if (known) known.count += 1
    else counts.set(key, { cause: error, count: 1 })
  }
  return [...counts.values()].sort((one, other) => other.count - one.count)
}
