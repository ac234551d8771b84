import { lapse } from '../../letter/moves.ts'
import { claimScore } from '../../letter/order.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ClaimRequest } from '../../store.ts'
import type { StoreContext } from './context.ts'
import { actionCode, isActiveCode, retrying, wait } from '../rows/codes.ts'
import { cellsWhere } from './counters.ts'
import type { LoadedLetter } from '../rows/form.ts'
import type { Methods } from './protocol.ts'
import { findLetter, laterEntries, type Found } from './reading.ts'
import { valuesOf, type Row } from '../rows/row.ts'
import { remember, rewrite } from './writing.ts'

const claimed = actionCode('claim')

/**
 * Maximum number of letters and payload bytes of one claim.
 */
const maxClaimLetters = 1000
const maxClaimBytes = 64 * 2 ** 20

/**
 * Letters of one queue and priority, ordered by due time.
 */
interface Range {
  queue: number
  priority: number
}

interface Candidate {
  seq: number
  id: string
  dueMs: number
  score: number
}

export function claim(context: StoreContext, request: ClaimRequest): Methods['claim']['response'] {
  const ranges = rangesOf(context, request)
  const due = request.limit > 0 ? candidates(context, ranges, request.limit) : []
  const letters: LoadedLetter[] = []
  let bytes = 0
  for (const { seq } of due) {
    if (bytes > maxClaimBytes) break
    const letter = lease(context, findLetter(context, 'seq', seq, 'whole')!, request)
    bytes += letter[4]?.byteLength ?? 0
    letters.push(letter)
  }
  const nextDueMs = letters.length < request.limit ? nextOf(context, ranges) : undefined
  return nextDueMs === undefined ? { letters } : { letters, nextDueMs }
}

/** The queues and priorities that have active letters, according to the counts. */
function rangesOf(context: StoreContext, { queues, except }: ClaimRequest): Range[] {
  const asked = queues && new Set(queues.map((name) => context.queues.find(name)))
  const left = new Set((except ?? []).map((name) => context.queues.find(name)))
  const ranges = new Map<number, Range>()
  const passes = ({ queue, state }: { queue: number; state: number }): boolean =>
    isActiveCode(state) && (!asked || asked.has(queue)) && !left.has(queue)
  for (const [{ queue, priority }] of cellsWhere(context.counters, passes))
    ranges.set(queue * 4 + priority, { queue, priority })
  return [...ranges.values()]
}

const headsOf = `SELECT seq, id, due_at FROM letters INDEXED BY letters_due
  WHERE queue = ? AND wait = ? AND priority = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?`

/** The first due letters: the heads of all ranges, merged in claim order. */
function candidates(context: StoreContext, ranges: Range[], limit: number): Candidate[] {
  const heads: Candidate[] = []
  for (const { queue, priority } of ranges)
    for (const place of [wait.ready, wait.leased]) {
      const rows = context.db.all(
        headsOf,
        queue,
        place,
        priority,
        context.nowMs,
        Math.min(limit, maxClaimLetters),
      )
      for (const [seq, id, dueMs] of rows as [number, string, number][])
        heads.push({ seq, id, dueMs, score: claimScore(priority, dueMs) })
    }
  heads.sort((a, b) => a.score - b.score || (a.id < b.id ? -1 : 1))
  return heads.slice(0, Math.min(limit, maxClaimLetters))
}

const nextIn = `SELECT due_at FROM letters INDEXED BY letters_due
  WHERE queue = ? AND wait = ? AND priority = ? AND due_at IS NOT NULL ORDER BY due_at, id LIMIT 1`

function nextOf(context: StoreContext, ranges: Range[]): number | undefined {
  let next: number | undefined
  for (const { queue, priority } of ranges)
    for (const place of [wait.ready, wait.leased]) {
      const found = context.db.get(nextIn, queue, place, priority)?.[0] as number | undefined
      if (found !== undefined && (next === undefined || found < next)) next = found
    }
  return next
}

/**
 * Leases one letter and counts the retry. Same as `claim` in `letter/moves.ts`, for rows.
 */
function lease(
  context: StoreContext,
  { entry, letter }: Found,
  request: ClaimRequest,
): LoadedLetter {
  const { row, seq, queue } = entry
  const at = toTimestamp(context.nowMs)
  const next: Row = {
    ...row,
    state: retrying,
    epoch: row.epoch + 1,
    retries: row.retries + 1,
    version: row.version + 1,
    retryAt: null,
    worker: request.worker,
    leasedUntil: toTimestamp(context.nowMs + request.leaseMs),
    updatedAt: at,
  }
  if (row.worker !== null && row.leasedUntil !== null) {
    const old = { worker: row.worker, epoch: row.epoch, expiresAt: row.leasedUntil }
    remember(context, seq, next, lapse(old, at))
    letter[6] = laterEntries(context.db, seq)
  }
  rewrite(context, entry, next)
  context.counters.total(queue, claimed, next)
  letter[0] = valuesOf(next)
  return letter
}
