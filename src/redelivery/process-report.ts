import { hostname } from 'node:os'
import type { Clock } from '../clock/clock.ts'
import type { LoopStatus } from '../letter/loop-status.ts'
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
  /** Loops on mailboxes that this process runs. Absent: it has reported none. */
  loops?: LoopStatus[]
}

const maxLimiters = 200
const maxLoops = 200

/** What a process is, and the loops whose status is part of its report. */
export interface AboutProcess extends Pick<ProcessReport, 'kind' | 'version'> {
  loops: ReportedLoop[]
}

/** MainLoop, EvalLoop or DLQConsumer. */
export interface ReportedLoop {
  status(): LoopStatus
}

/** Creates the report of this process, which starts now. */
export function createReport(
  about: AboutProcess,
  slots: number,
  clock: Clock,
  redelivery: () => { active: number; limiters: LimiterStatus[] },
): () => ProcessReport {
  const startedAt = toTimestamp(clock.now())
  return () => {
    const { active, limiters } = redelivery()
    const { loops, ...described } = about
    const reported = loops.slice(0, maxLoops).map((loop) => loop.status())
    return {
      ...described,
      host: hostname(),
      pid: process.pid,
      startedAt,
      running: active,
      slots,
      limiters: mostLimiting(limiters),
      ...(reported.length === 0 ? {} : { loops: reported }),
    }
  }
}

/** At most `maxLimiters` limiters: first those that hold letters back, then those with a limit. */
function mostLimiting(limiters: readonly LimiterStatus[]): LimiterStatus[] {
  const rank = ({ state, limit }: LimiterStatus): number =>
    state === 'closed' ? (limit === undefined ? 2 : 1) : 0
  return limiters.toSorted((one, other) => rank(one) - rank(other)).slice(0, maxLimiters)
}
