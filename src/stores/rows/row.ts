import { crc32 } from 'node:zlib'

export type SqlValue = null | number | string | Uint8Array

/** A row of `letters`: all that changes, except what it waits for. */
export interface Row {
  id: string
  state: number
  priority: number
  category: number
  policy: number
  reason: string | null
  fingerprint: string
  version: number
  epoch: number
  retries: number
  backoffMs: number
  retryAt: string | null
  settledAt: string | null
  expiresAt: string | null
  deadLetteredAt: string
  updatedAt: string
  worker: string | null
  leasedUntil: string | null
  lane: string | null
  tenant: string | null
  /** 1: `dependsOn` is not empty. */
  dependent: number
  /** 1: it has tags. */
  tagged: number
  /** Number of history entries ever written, and of those no longer stored. */
  entries: number
  omitted: number
  /** Fields that no index and no statement uses, as JSON. */
  rest: string
  /** Checksum over all of the above that can change. See `seal`. */
  crc: number
}

/** The columns of a `Row`, in the order of `valuesOf` and `rowOf`. */
export const rowColumns =
  'id, state, priority, category, policy, reason, fingerprint, version, epoch, retries, backoff_ms, retry_at, ' +
  'settled_at, expires_at, dead_lettered_at, updated_at, worker, leased_until, lane, tenant, dependent, tagged, ' +
  'entries, omitted, rest, crc'

export const rowWidth = rowColumns.split(',').length

export function valuesOf(row: Row): SqlValue[] {
  return [
    row.id,
    row.state,
    row.priority,
    row.category,
    row.policy,
    row.reason,
    row.fingerprint,
    row.version,
    row.epoch,
    row.retries,
    row.backoffMs,
    row.retryAt,
    row.settledAt,
    row.expiresAt,
    row.deadLetteredAt,
    row.updatedAt,
    row.worker,
    row.leasedUntil,
    row.lane,
    row.tenant,
    row.dependent,
    row.tagged,
    row.entries,
    row.omitted,
    row.rest,
    row.crc,
  ]
}

export function rowOf(values: SqlValue[]): Row {
  return {
    id: values[0] as string,
    state: values[1] as number,
    priority: values[2] as number,
    category: values[3] as number,
    policy: values[4] as number,
    reason: values[5] as string | null,
    fingerprint: values[6] as string,
    version: values[7] as number,
    epoch: values[8] as number,
    retries: values[9] as number,
    backoffMs: values[10] as number,
    retryAt: values[11] as string | null,
    settledAt: values[12] as string | null,
    expiresAt: values[13] as string | null,
    deadLetteredAt: values[14] as string,
    updatedAt: values[15] as string,
    worker: values[16] as string | null,
    leasedUntil: values[17] as string | null,
    lane: values[18] as string | null,
    tenant: values[19] as string | null,
    dependent: values[20] as number,
    tagged: values[21] as number,
    entries: values[22] as number,
    omitted: values[23] as number,
    rest: values[24] as string,
    crc: values[25] as number,
  }
}

/** The checksum that a sound row carries. */
export function seal(row: Row): number {
  return crc32(
    `${row.id}|${row.state}|${row.priority}|${row.category}|${row.policy}|${row.reason}|${row.fingerprint}|${row.version}|` +
      `${row.epoch}|${row.retries}|${row.backoffMs}|${row.retryAt}|${row.settledAt}|${row.expiresAt}|` +
      `${row.deadLetteredAt}|${row.updatedAt}|${row.worker}|${row.leasedUntil}|${row.entries}|${row.omitted}|${row.rest}`,
  )
}
