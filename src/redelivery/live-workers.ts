import type { Json } from '../letter/letter.ts'
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
  const { kind, host, pid, version, startedAt, running, slots, limiters } = value as {
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
    ...(typeof startedAt === 'string' && isTimestamp(startedAt) ? { startedAt } : {}),
    ...(isCount(running) ? { running } : {}),
    ...(isCount(slots) ? { slots } : {}),
    ...(Array.isArray(limiters) ? { limiters: limiters.flatMap(limiterOf) } : {}),
  }
}

function limiterOf(value: Json): LimiterStatus[] {
  const { kind, name, state, until, inFlight, limit, recovering } = Object(value) as {
    [Part in keyof LimiterStatus]?: Json
  }
  if (kind !== 'queue' && kind !== 'dependency') return []
  if (state !== 'open' && state !== 'half-open' && state !== 'closed') return []
  if (typeof name !== 'string' || !isCount(inFlight)) return []
  return [
    {
      kind,
      name,
      state,
      ...(typeof until === 'string' && isTimestamp(until) ? { until } : {}),
      inFlight,
      ...(isCount(limit) ? { limit } : {}),
      ...(recovering === true ? { recovering } : {}),
    },
  ]
}

function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}
