import type { Json } from '../letter/letter.ts'
import {
  breakerStates,
  loopKinds,
  type LoopCounts,
  type LoopKind,
  type LoopStatus,
} from '../letter/loop-status.ts'
import { isTimestamp, toTimestamp, type Timestamp } from '../letter/time.ts'
import type { DocumentRecord, Store } from '../store.ts'
import type { LimiterStatus } from './flow/limiter.ts'
import { processKinds, type ProcessKind, type ProcessReport } from './process-report.ts'
import { maxWorkers, parseHeartbeat, silentMs, workerKind } from './worker-registry.ts'

/** A live process of the store. Processes of an older version report only their queues. */
export interface LiveWorker extends Partial<ProcessReport> {
  id: string
  /** Queues that it has handlers for. */
  queues: string[]
  /** By the clock of the process. */
  seenAt: Timestamp
}

/**
 * The live processes of a store, by id. A process without a heartbeat for a minute, or for three
 * intervals if that is longer, is left out. The sweep of any worker removes its record.
 */
export async function listLiveWorkers(
  store: Pick<Store, 'records'>,
  nowMs: number,
): Promise<LiveWorker[]> {
  const records = await store.records.list(workerKind, { limit: maxWorkers })
  return records.flatMap((record) => {
    const { sweepMs, seenAt } = parseHeartbeat(record.value)
    const isLive = seenAt >= toTimestamp(nowMs - Math.max(silentMs, 3 * sweepMs))
    return isLive ? [workerOf(record)] : []
  })
}

/** Missing or malformed parts are left out: the record may be of another version. */
function workerOf({ id, value }: DocumentRecord): LiveWorker {
  const { queues, seenAt } = parseHeartbeat(value)
  const { kind, host, pid, version, startedAt, running, slots, limiters, loops } = value as {
    [Part in keyof ProcessReport]?: Json
  }
  return {
    id,
    queues,
    seenAt,
    ...(processKinds.includes(kind as ProcessKind) ? { kind: kind as ProcessKind } : {}),
    ...(typeof host === 'string' ? { host } : {}),
    ...(isCount(pid) ? { pid } : {}),
    ...(typeof version === 'string' ? { version } : {}),
    ...(isTime(startedAt) ? { startedAt } : {}),
    ...(isCount(running) ? { running } : {}),
    ...(isCount(slots) ? { slots } : {}),
    ...(Array.isArray(limiters) ? { limiters: limiters.flatMap(limiterOf) } : {}),
    ...(Array.isArray(loops) ? { loops: loops.flatMap(loopOf) } : {}),
  }
}

function limiterOf(value: Json): LimiterStatus[] {
  const { kind, name, state, until, inFlight, limit, recovering } = Object(value) as {
    [Part in keyof LimiterStatus]?: Json
  }
  if (kind !== 'queue' && kind !== 'dependency') return []
  if (!isBreakerState(state)) return []
  if (typeof name !== 'string' || !isCount(inFlight)) return []
  return [
    {
      kind,
      name,
      state,
      ...(isTime(until) ? { until } : {}),
      inFlight,
      ...(isCount(limit) ? { limit } : {}),
      ...(recovering === true ? { recovering } : {}),
    },
  ]
}

function loopOf(value: Json): LoopStatus[] {
  const { name, kind, mailbox, broker, deadLetters, running, counts, breaker, ...rest } = Object(
    value,
  ) as { [Part in keyof LoopStatus]?: Json }
  const { received, processed, failed, dead } = Object(counts) as {
    [Part in keyof LoopCounts]?: Json
  }
  const { state, until } = Object(breaker) as { state?: Json; until?: Json }
  const { lastActivityAt, problem } = rest
  if (typeof name !== 'string' || !loopKinds.includes(kind as LoopKind)) return []
  if (typeof mailbox !== 'string' || typeof broker !== 'string') return []
  if (!isCount(received) || !isCount(processed) || !isCount(failed) || !isCount(dead)) return []
  return [
    {
      name,
      kind: kind as LoopKind,
      mailbox,
      broker,
      ...(typeof deadLetters === 'string' ? { deadLetters } : {}),
      running: running === true,
      counts: { received, processed, failed, dead },
      ...(isBreakerState(state) ? { breaker: { state, ...(isTime(until) ? { until } : {}) } } : {}),
      ...(isTime(lastActivityAt) ? { lastActivityAt } : {}),
      ...(typeof problem === 'string' ? { problem } : {}),
    },
  ]
}

function isBreakerState(value: Json | undefined): value is LimiterStatus['state'] {
  return breakerStates.includes(value as LimiterStatus['state'])
}

function isTime(value: Json | undefined): value is Timestamp {
  return typeof value === 'string' && isTimestamp(value)
}

function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}
