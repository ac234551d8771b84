import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { DeadLetterQueue, type QueueOptions } from '../src/index.ts'
import { openLocation, type Location, type StoreKind } from './location.ts'
import type { MailboxKind } from './workloads/mailboxes/kinds.ts'

/**
 * Amount of work of a run. Rounds are interleaved and medians are reported, since machines are
 * noisy.
 */
export interface Sizes {
  rounds: number
  /** Letters that are not timed, to warm up code and caches. */
  warmUp: number
  single: number
  concurrent: number
  bulk: number
  drain: number
  bulkAction: number
  smallBacklog: number
  largeBacklog: number
  growth: number
  lookups: number
  /** Groups that a large backlog is spread over. */
  groups: number
  /** Messages through a mailbox, one at a time and concurrently. */
  sequentialMessages: number
  concurrentMessages: number
  /** Captures over HTTP: one at a time in each request, and lines in one request. */
  httpCaptures: number
  httpLines: number
}

export const fullSizes: Sizes = {
  rounds: 5,
  warmUp: 3_000,
  single: 5_000,
  concurrent: 30_000,
  bulk: 100_000,
  drain: 100_000,
  bulkAction: 100_000,
  smallBacklog: 10_000,
  largeBacklog: 1_000_000,
  growth: 5_000,
  lookups: 500,
  groups: 5_000,
  sequentialMessages: 1_000,
  concurrentMessages: 20_000,
  httpCaptures: 20_000,
  httpLines: 20_000,
}

export const quickSizes: Sizes = {
  rounds: 3,
  warmUp: 2_000,
  single: 1_000,
  concurrent: 8_000,
  bulk: 10_000,
  drain: 10_000,
  bulkAction: 10_000,
  smallBacklog: 2_000,
  largeBacklog: 50_000,
  growth: 2_000,
  lookups: 100,
  groups: 2_000,
  sequentialMessages: 200,
  concurrentMessages: 4_000,
  httpCaptures: 2_000,
  httpLines: 4_000,
}

/** What a workload uses: a location, and queues on new stores. */
export interface Bench {
  kind: StoreKind
  sizes: Sizes
  location: Location
  open(name: string, options?: QueueOptions): Promise<DeadLetterQueue>
  /** Runs work and measures the event-loop delay meanwhile. Resolves with the duration. */
  timed(what: string, work: () => Promise<unknown>): Promise<number>
  /** The 99th percentile of the event-loop delay: the maximum of all runs with one name. */
  loopDelaysMs(): Map<string, number>
  /**
   * Runs work and adds the CPU time of this process, in all its threads, to those of its name. It
   * is reported per letter.
   */
  countCpu<T>(what: string, letters: number, work: () => Promise<T>): Promise<T>
  /** The median CPU time per letter in microseconds, by name. */
  cpuPerLetter(): [what: string, us: number][]
  /** Discards the measured delays and CPU times. */
  forget(): void
  log(line: string): void
  /** Removes all stores so far. */
  clear(): Promise<void>
  close(): Promise<void>
}

export async function openBench(kind: StoreKind, sizes: Sizes): Promise<Bench> {
  const location = await openLocation(kind)
  const delaysMs = new Map<string, number[]>()
  const cpuUs = new Map<string, number[]>()
  return {
    kind,
    sizes,
    location,
    open: (name, options) => DeadLetterQueue.open(location.url(name), options),
    timed: async (what, work) => {
      const watch = monitorEventLoopDelay({ resolution: 1 })
      watch.enable()
      const startMs = performance.now()
      await work()
      const tookMs = performance.now() - startMs
      // One more turn of the event loop, so that work that blocked it entirely shows a delay.
      await setTimeout(5)
      watch.disable()
      delaysMs.set(what, [...(delaysMs.get(what) ?? []), watch.percentile(99) / 1e6])
      return tookMs
    },
    loopDelaysMs: () => new Map([...delaysMs].map(([what, found]) => [what, Math.max(...found)])),
    countCpu: async (what, letters, work) => {
      const start = process.cpuUsage()
      const value = await work()
      const { user, system } = process.cpuUsage(start)
      cpuUs.set(what, [...(cpuUs.get(what) ?? []), (user + system) / letters])
      return value
    },
    cpuPerLetter: () => [...cpuUs].map(([what, all]) => [what, median(all)]),
    forget: () => {
      delaysMs.clear()
      cpuUs.clear()
    },
    log: (line) => void process.stderr.write(`${line}\n`),
    clear: () => location.clear(),
    close: () => location.close(),
  }
}

/** One measured value and its target. Targets are for durable stores. */
export interface Result {
  /** The store or the broker; `none` if the value depends on neither. */
  store: StoreKind | MailboxKind | 'none'
  what: string
  value: number
  unit: '/s' | 'x' | 'ms' | 'µs' | 'B' | ''
  target?: { atLeast: number } | { atMost: number }
  met?: boolean
}

export function result(
  store: Result['store'],
  what: string,
  value: number,
  unit: Result['unit'],
  target?: Result['target'],
): Result {
  if (!target || store === 'memory') return { store, what, value, unit }
  const met = 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
  return { store, what, value, unit, target, met }
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = share * (sorted.length - 1)
  const low = sorted[Math.floor(at)] ?? Number.NaN
  const high = sorted[Math.ceil(at)] ?? Number.NaN
  return low + (high - low) * (at - Math.floor(at))
}

export const rate = (count: number, tookMs: number): number => (count / tookMs) * 1000
