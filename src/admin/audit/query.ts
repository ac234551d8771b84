import { checkKeys, checkOneOf, describeValue, keysOf } from '../../check/keys.ts'
import { isTime } from '../../check/read-time.ts'
import { RedriveError } from '../../errors.ts'
import {
  auditActions,
  auditOutcomes,
  type AuditEntry,
  type AuditPosition,
  type AuditQuery,
} from '../../letter/audit.ts'
import { maxLimit, type Page } from '../../letter/query.ts'
import { toMs } from '../../letter/time.ts'
import type { AuditRecords } from './records.ts'

/** Entries that are read at once. */
const scanEntries = 500

const queryKeys = keysOf<AuditQuery>({
  actor: true,
  action: true,
  outcome: true,
  what: true,
  since: true,
  until: true,
  order: true,
  limit: true,
  cursor: true,
})

/** A page of the entries that match. It reads entries until the page is full. */
export async function findEntries(
  records: AuditRecords,
  query: AuditQuery,
): Promise<Page<AuditEntry>> {
  checkAuditQuery(query)
  const { limit = 100, cursor, order = 'newest' } = query
  const first = ((await records.pruned()) ?? { seq: 0 }).seq
  const last = await records.lastSeq()
  const isNewest = order === 'newest'
  const start = cursor === undefined ? undefined : Number(cursor)
  let after = isNewest ? first : Math.max(first, start ?? first)
  let through = isNewest ? Math.min(last, start === undefined ? last : start - 1) : last
  const items: AuditEntry[] = []
  while (after < through && items.length <= limit) {
    const from = isNewest ? Math.max(after, through - scanEntries) : after
    const to = isNewest ? through : Math.min(through, after + scanEntries)
    const entries = await records.range(from, to)
    items.push(...(isNewest ? entries.toReversed() : entries).filter((one) => matches(one, query)))
    if (isNewest) through = from
    else after = to
  }
  if (items.length <= limit) return { items }
  const page = items.slice(0, limit)
  return { items: page, cursor: String(page.at(-1)!.seq) }
}

function matches(entry: AuditEntry, query: AuditQuery): boolean {
  const { actor, action, outcome, what, since, until } = query
  const atMs = toMs(entry.at)
  return (
    (actor === undefined || entry.actor === actor) &&
    (action === undefined || [action].flat().includes(entry.action)) &&
    (outcome === undefined || [outcome].flat().includes(entry.outcome)) &&
    (what === undefined || entry.what.id === what || entry.endpoint === what) &&
    (since === undefined || atMs >= toMs(since)) &&
    (until === undefined || atMs < toMs(until))
  )
}

function checkAuditQuery(query: AuditQuery): void {
  checkKeys('audit query', query, queryKeys)
  const { action, outcome, order, limit, cursor } = query
  if (action !== undefined) checkOneOf('action', action, auditActions)
  if (outcome !== undefined) checkOneOf('outcome', outcome, auditOutcomes)
  if (order !== undefined) checkOneOf('order', [order], ['newest', 'oldest'])
  for (const key of ['actor', 'what'] as const)
    if (query[key] !== undefined && typeof query[key] !== 'string')
      reject(`\`${key}\` must be a string, got ${describeValue(query[key])}`)
  for (const key of ['since', 'until'] as const) checkTime(key, query[key])
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 1 || limit > maxLimit))
    reject(`limit must be an integer from 1 to ${maxLimit}, got ${describeValue(limit)}`)
  if (cursor !== undefined && (typeof cursor !== 'string' || !/^\d{1,12}$/.test(cursor)))
    reject(`cursor must come from an earlier page of the audit log, got ${describeValue(cursor)}`)
}

/** Checks the position that a caller has kept. */
export function checkPosition(position: AuditPosition): void {
  checkKeys('position of the audit log', position, ['seq', 'hash'])
  const { seq, hash } = position
  if (!Number.isSafeInteger(seq) || seq < 1)
    reject(`seq must be an integer from 1, got ${describeValue(seq)}`)
  if (typeof hash !== 'string' || !/^[\da-f]{64}$/.test(hash))
    reject(`hash must be a SHA-256 of 64 hexadecimal digits, got ${describeValue(hash)}`)
}

export function checkTime(name: string, value: unknown): void {
  if (value === undefined || (typeof value === 'string' && isTime(value))) return
  reject(`\`${name}\` must be an ISO-8601 timestamp, got ${describeValue(value)}`)
}

function reject(why: string): never {
  throw new RedriveError('INVALID_INPUT', why)
}
