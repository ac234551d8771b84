import { hostname } from 'node:os'
import type { Clock } from '../clock/clock.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import type { LimiterStatus } from './flow/limiter.ts'

/** `server`: redrive serve. `worker`: redrive work. `program`: any other with this library. */
export const processKinds = ['server', 'worker', 'program'] as const
export type ProcessKind = (typeof processKinds)[number]

/** What a process reports about itself with its heartbeat, besides its queues. */
export interface ProcessReport {
  kind: ProcessKind
  host: string
  pid: number
  /** Of Redrive. */
  version?: string
  startedAt: Timestamp
  /** Number of handlers that run. */
  running: number
  /** Number of handlers that may run at once. */
  slots: number
  /** Breakers and limits of queues and dependencies, as this process sees them. */
  limiters: LimiterStatus[]
}

const maxLimiters = 200

/** Creates the report of this process, which starts now. */
export function createReport(
  about: Pick<ProcessReport, 'kind' | 'version'>,
  slots: number,
  clock: Clock,
  redelivery: () => { active: number; limiters: LimiterStatus[] },
): () => ProcessReport {
  const startedAt = toTimestamp(clock.now())
  return () => {
    const { active, limiters } = redelivery()
    return {
      ...about,
      host: hostname(),
      pid: process.pid,
      startedAt,
      running: active,
      slots,
      limiters: mostLimiting(limiters),
    }
  }
}

/** Those that hold something back first, and not all of very many. */
function mostLimiting(limiters: readonly LimiterStatus[]): LimiterStatus[] {
  const rank = ({ state, limit }: LimiterStatus): number =>
    state === 'closed' ? (limit === undefined ? 2 : 1) : 0
  return limiters.toSorted((one, other) => rank(one) - rank(other)).slice(0, maxLimiters)
}
