import {
  seriesSteps,
  type SeriesMetric,
  type SeriesStep,
  type SeriesView,
} from '../api/schemas/series.ts'
import { Repeater } from '../clock/repeater.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { states, type Json, type State } from '../letter/letter.ts'
import { toMs, toTimestamp, type Timestamp } from '../letter/time.ts'
import { outcomeOfAction } from '../observers/alerts/measures.ts'
import { ownOf } from '../options/options.ts'
import type { Store } from '../store.ts'

const kind = 'sample'
/** One sample is taken in each slot, whatever the number of servers. */
const slotMs = seriesSteps['5m']
const hourMs = seriesSteps['1h']
/** All samples are kept for this long, then the first one of each hour. */
const fullMs = 48 * hourMs
const keptMs = 30 * seriesSteps['1d']
/** Queues of a sample. With more, those with the most captures are sampled. */
const maxQueues = 500
/** Steps of an answer. */
const maxSteps = 1000
/** Queues of an answer that has a line for each. */
const maxLines = 50
const pageSize = 100
const defaultRangeMs = 24 * hourMs

/** Events since the store was created, and the letters of each state. */
interface Counts {
  captured: number
  resolved: number
  failed: number
  depth: { [S in State]?: number }
}

/** The counts at the beginning of a slot, whose timestamp is the id of the record. */
interface Sample {
  all: Counts
  queues: { [queue: string]: Counts }
}

interface SampleAt {
  atMs: number
  sample: Sample
}

export interface SeriesQuery {
  metric: SeriesMetric
  /** Only these queues. Undefined: all. */
  queues?: readonly string[] | undefined
  byQueue: boolean
  from?: Timestamp | undefined
  to?: Timestamp | undefined
  step?: SeriesStep | undefined
}

export interface SeriesOptions {
  store: Pick<Store, 'records' | 'tally' | 'totals'>
  clock: Clock
  onError: (error: unknown) => void
}

/**
 * Statistics over time. While a server runs, it takes a sample of the maintained counts of the
 * store every five minutes. Several servers on a store share the samples: compare-and-set lets one
 * of them write the sample of a slot.
 */
export class Series {
  readonly #options: SeriesOptions
  readonly #repeater: Repeater

  constructor(options: SeriesOptions) {
    this.#options = options
    const { clock, onError } = options
    this.#repeater = new Repeater({
      clock,
      round: async () => {
        await this.sample().catch(onError)
        return slotMs - (clock.now() % slotMs)
      },
    })
  }

  start(): void {
    this.#repeater.start()
  }

  stop(): Promise<void> {
    return this.#repeater.stop()
  }

  /** Takes the sample of this slot if there is none, and removes old samples. */
  async sample(): Promise<void> {
    const { store, clock } = this.#options
    const now = clock.now()
    const id = toTimestamp(now - (now % slotMs))
    if (await store.records.get(kind, id)) return
    const sample = await this.#read()
    const written = await store.records.put(kind, id, sample as unknown as Json, 0)
    if (written === 'written') await this.#thin(now)
  }

  /** The values of a metric, one for each step that ends after `from` and not after `to`. */
  async query(query: SeriesQuery): Promise<SeriesView> {
    const { metric, byQueue, queues } = query
    const now = this.#options.clock.now()
    const { fromMs, toMs: untilMs, step } = readRange(query, now)
    const stepMs = seriesSteps[step]
    const ends: number[] = []
    for (let end = fromMs + stepMs; end <= untilMs; end += stepMs) ends.push(end)
    const samples = await this.#samples(fromMs - Math.max(stepMs, hourMs), untilMs)
    // The last step is not over: its values are those until now.
    if (untilMs > now) samples.push({ atMs: now, sample: await this.#read() })
    const names = byQueue ? namesOf(samples.at(-1)?.sample, queues) : undefined
    if (names && names.length > maxLines)
      throw new RedriveError(
        'INVALID_INPUT',
        `there are ${names.length} queues, and an answer has at most ${maxLines} of them: name some with \`queue\``,
      )
    const pairs = pairsOf(samples, ends, stepMs, metric)
    const sources = names
      ? names.map((queue) => ({ queue, countsOf: (sample: Sample) => countsOf(sample, queue) }))
      : [{ countsOf: (sample: Sample) => sumOf(sample, queues) }]
    const lines = sources.flatMap(({ countsOf: counts, ...of }) => {
      if (metric === 'depth')
        return states.map((state) => ({
          ...of,
          state,
          values: pairs.map((pair) => pair && (counts(pair.last).depth[state] ?? 0)),
        }))
      // A counter that fell, because the store was replaced, has not grown.
      const values = pairs.map(
        (pair) =>
          pair && Math.max(0, counts(pair.last)[metric] - counts(pair.before ?? none)[metric]),
      )
      return [{ ...of, values }]
    })
    return { metric, step, times: ends.map(toTimestamp), lines }
  }

  /** Events of a queue in the last hour, from its first sample until now. */
  async lastHour(queue: string): Promise<Omit<Counts, 'depth'> | null> {
    const now = this.#options.clock.now()
    const [first] = await this.#samples(now - hourMs - slotMs, now)
    if (!first) return null
    const [before, after] = [countsOf(first.sample, queue), countsOf(await this.#read(), queue)]
    const grown = (metric: Exclude<SeriesMetric, 'depth'>): number =>
      Math.max(0, after[metric] - before[metric])
    return { captured: grown('captured'), resolved: grown('resolved'), failed: grown('failed') }
  }

  /** The counts of the store now. */
  async #read(): Promise<Sample> {
    const { store } = this.#options
    const [totals, ...byState] = await Promise.all([
      store.totals(),
      ...states.map(async (state) => [state, await store.tally('queue', { state })] as const),
    ])
    const all = noCounts()
    const queues = new Map<string, Counts>()
    const countsFor = (queue: string): Counts => {
      const own = queues.get(queue) ?? noCounts()
      queues.set(queue, own)
      return own
    }
    for (const { action, queue, count } of totals) {
      // A failure that was added to a letter is no new letter.
      const metric = action === 'occur' ? undefined : outcomeOfAction[action]
      if (metric === undefined) continue
      countsFor(queue)[metric] += count
      all[metric] += count
    }
    for (const [state, counts] of byState)
      for (const [queue, count] of counts) {
        if (count === 0) continue
        countsFor(queue).depth[state] = count
        all.depth[state] = (all.depth[state] ?? 0) + count
      }
    const most = [...queues].sort(([, a], [, b]) => b.captured - a.captured).slice(0, maxQueues)
    return { all, queues: Object.fromEntries(most) }
  }

  /** The samples from one time to another one, the oldest first. */
  async #samples(fromMs: number, untilMs: number): Promise<SampleAt[]> {
    const samples: SampleAt[] = []
    for await (const { id, value } of this.#records(toTimestamp(fromMs - 1))) {
      const atMs = toMs(id)
      if (atMs > untilMs) break
      samples.push({ atMs, sample: value as unknown as Sample })
    }
    return samples
  }

  async *#records(from?: string): AsyncGenerator<{ id: string; value: Json }> {
    const { records } = this.#options.store
    for (let after = from; ;) {
      const query = { limit: pageSize, ...(after === undefined ? {} : { after }) }
      const page = await records.list(kind, query)
      yield* page
      if (page.length < pageSize) return
      after = page.at(-1)!.id
    }
  }

  /** Removes old samples: all but the first one of each hour, later these too. */
  async #thin(now: number): Promise<void> {
    const { records } = this.#options.store
    const full = toTimestamp(now - fullMs)
    const oldest = toTimestamp(now - keptMs)
    let hour = ''
    for await (const { id } of this.#records()) {
      if (id >= full) return
      const ownHour = id.slice(0, 13)
      if (id < oldest || ownHour === hour) await records.remove(kind, id)
      hour = ownHour
    }
  }
}

const none: Sample = { all: noCounts(), queues: {} }

function noCounts(): Counts {
  return { captured: 0, resolved: 0, failed: 0, depth: {} }
}

/** The range in whole steps of UTC. */
function readRange(
  { from, to, step: given }: SeriesQuery,
  now: number,
): { fromMs: number; toMs: number; step: SeriesStep } {
  const endMs = to === undefined ? now : Math.min(toMs(to), now + slotMs)
  const startMs = from === undefined ? endMs - defaultRangeMs : toMs(from)
  const steps = Object.keys(seriesSteps) as SeriesStep[]
  const step =
    given ?? steps.find((one) => (endMs - startMs) / seriesSteps[one] <= maxSteps / 2) ?? '1d'
  const stepMs = seriesSteps[step]
  const fromMs = Math.floor(startMs / stepMs) * stepMs
  const untilMs = Math.ceil(endMs / stepMs) * stepMs
  if (startMs >= endMs)
    throw new RedriveError('INVALID_INPUT', '`from` must be before `to`, and in the past')
  if ((untilMs - fromMs) / stepMs > maxSteps)
    throw new RedriveError(
      'INVALID_INPUT',
      `from, to and step give more than ${maxSteps} values: use a longer step`,
    )
  return { fromMs, toMs: untilMs, step }
}

function namesOf(newest: Sample | undefined, queues: readonly string[] | undefined): string[] {
  return [...(queues ?? Object.keys(newest?.queues ?? {}))].sort()
}

function countsOf({ queues }: Sample, queue: string): Counts {
  return ownOf(queues, queue) ?? noCounts()
}

/** The sum of some queues. */
function sumOf(sample: Sample, queues: readonly string[] | undefined): Counts {
  if (!queues) return sample.all
  const sum = noCounts()
  for (const queue of queues) {
    const { captured, resolved, failed, depth } = countsOf(sample, queue)
    sum.captured += captured
    sum.resolved += resolved
    sum.failed += failed
    for (const state of states) sum.depth[state] = (sum.depth[state] ?? 0) + (depth[state] ?? 0)
  }
  return sum
}

/**
 * For each step, its last sample and the last one before it; null without a sample in the step.
 * What happened while no server ran counts in the step of the first sample afterwards. The first
 * sample of all has none before it, so that nothing is known about the growth until then.
 */
function pairsOf(
  samples: readonly SampleAt[],
  ends: readonly number[],
  stepMs: number,
  metric: SeriesMetric,
): ({ last: Sample; before?: Sample } | null)[] {
  let next = 0
  const lastUntil = (timeMs: number): SampleAt | undefined => {
    while (next < samples.length && samples[next]!.atMs <= timeMs) next++
    return samples[next - 1]
  }
  return ends.map((end) => {
    const before = lastUntil(end - stepMs)
    const last = lastUntil(end)
    if (!last || last === before) return null
    if (before) return { last: last.sample, before: before.sample }
    return metric === 'depth' ? { last: last.sample } : null
  })
}
