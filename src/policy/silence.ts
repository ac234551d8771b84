/**
 * What is known about the captures of a queue over time. It tells whether the queue is silent for
 * longer than it ever was: a queue that is naturally quiet at night or at weekends is not silent.
 */
export interface Silence {
  /** Captures so far. */
  count: number
  /** Start of the observation. */
  sinceMs: number
  /** Last time that the queue captured. Time in which nobody observed it is added. */
  activeMs: number
  /** Last observation that is kept. */
  seenMs: number
  /** Observations with captures, up to `enoughActive`. */
  active: number
  /** The longest pause between captures on each day: the day since 1970 and milliseconds. */
  pauses: [day: number, ms: number][]
}

export interface SilenceLimits {
  /** Minimum silence. */
  forMs: number
  /** Minimum time of observation before silence counts. */
  learnMs: number
  /** Time between two observations. */
  everyMs: number
}

const dayMs = 86_400_000
/** Days whose pauses are remembered: two weeks have two weekends. */
export const rememberedDays = 14
/** A queue with fewer observations of captures has no usual rate. */
export const enoughActive = 20
/** Silence counts from this multiple of the longest pause. */
const pauseFactor = 2
/** Observations are kept so many times in `forMs`, so that a busy queue costs few writes. */
const observationsPerSilence = 12
/** A longer time between two observations, in multiples of their interval, was not observed. */
const missedObservations = 3

/**
 * The state after an observation; the same object if there is nothing to keep. `count` is the
 * number of captures so far. A pause that raised an alert is not learned: otherwise the next one
 * would have to be longer.
 */
export function observe(
  before: Silence | undefined,
  count: number,
  atMs: number,
  limits: SilenceLimits,
  hasAlert: boolean,
): Silence {
  // A lower count is that of another store, and a much earlier time that of a corrected clock.
  if (!before || count < before.count || atMs < before.seenMs - dayMs)
    return { count, sinceMs: atMs, activeMs: atMs, seenMs: atMs, active: 0, pauses: [] }
  const stepMs = Math.max(limits.everyMs, limits.forMs / observationsPerSilence)
  const elapsedMs = atMs - before.seenMs
  // Whether the queue captured in unobserved time is unknown, so this time is not part of a pause.
  const unobservedMs = elapsedMs > missedObservations * stepMs ? elapsedMs : 0
  const lastMs = before.activeMs + unobservedMs
  const isDue = elapsedMs >= stepMs || unobservedMs > 0 || hasAlert
  if (!isDue) return before
  if (count === before.count) return { ...before, activeMs: lastMs, seenMs: atMs }
  const pauses = hasAlert ? before.pauses : addPause(before.pauses, atMs - lastMs, atMs)
  const active = Math.min(enoughActive, before.active + 1)
  return { ...before, count, activeMs: atMs, seenMs: atMs, active, pauses }
}

function addPause(pauses: Silence['pauses'], pauseMs: number, atMs: number): Silence['pauses'] {
  const today = Math.floor(atMs / dayMs)
  const earlier = pauses.filter(([day]) => day > today - rememberedDays && day < today)
  const longestToday = pauses.find(([day]) => day === today)?.[1] ?? 0
  return [...earlier, [today, Math.max(longestToday, pauseMs)]]
}

/** How long the queue has captured nothing. */
export function silentMs({ activeMs }: Silence, atMs: number): number {
  return Math.max(0, atMs - activeMs)
}

/** The silence from which an alert is raised. Infinity: the queue is not known well enough. */
export function silenceLimitMs(silence: Silence, { forMs, learnMs }: SilenceLimits): number {
  const { active, pauses, sinceMs, activeMs } = silence
  // Until the last capture: a pause in progress, such as a weekend, is not learned yet.
  if (active < enoughActive || activeMs - sinceMs < learnMs) return Infinity
  const longestMs = Math.max(0, ...pauses.map(([, ms]) => ms))
  return Math.max(forMs, pauseFactor * longestMs)
}
