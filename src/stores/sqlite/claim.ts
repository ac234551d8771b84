import { claimScore } from '../../letter/order.ts'
import type { ClaimRequest } from '../../store.ts'
import { actionCode, isActiveCode, pending, retrying, wait } from '../rows/codes.ts'
import { leaseEnd } from './apply.ts'
import type { StoreContext } from './context.ts'
import { countedOf } from './counted.ts'
import { cellsWhere } from './counters.ts'
import { loadLetters } from './letters.ts'
import { appendLine } from './move.ts'
import type { Methods } from './protocol.ts'
import { after, sizeOf, type SentLetter } from './transfer.ts'

/** Maximum number of letters of one claim, and of letters that are read at once. */
const maxLetters = 1000
const lettersPerRead = 64

/** A claim ends early past this number of payload bytes. */
const maxBytes = 64 * 2 ** 20

const claimed = 1 << actionCode('claim')

/** Letters of one queue and priority, ordered by due time. */
interface Range {
  queue: number
  priority: number
}

interface Candidate {
  seq: number
  id: string
  score: number
  /** Its lease expired, and was not settled. */
  isLapsed: boolean
}

export function claim(context: StoreContext, request: ClaimRequest): Methods['claim']['response'] {
  const ranges = rangesOf(context, request)
  const limit = Math.min(request.limit, maxLetters)
  const due = limit > 0 ? findCandidates(context, ranges, limit) : []
  const letters: SentLetter[] = []
  let bytes = 0
  for (let start = 0; start < due.length && bytes <= maxBytes; start += lettersPerRead) {
    const some = leaseLetters(context, due.slice(start, start + lettersPerRead), request)
    for (const letter of some) bytes += sizeOf(letter)
    letters.push(...some)
  }
  const nextDueMs = letters.length < request.limit ? nextDue(context, ranges) : undefined
  return nextDueMs === undefined ? { letters } : { letters, nextDueMs }
}

/** The queues and priorities that have active letters, according to the counts. */
function rangesOf(context: StoreContext, { queues, except }: ClaimRequest): Range[] {
  const wanted = queues && new Set(queues.map((name) => context.queues.find(name)))
  const unwanted = new Set((except ?? []).map((name) => context.queues.find(name)))
  const ranges = new Map<number, Range>()
  const passes = ({ queue, state }: { queue: number; state: number }): boolean =>
    isActiveCode(state) && (!wanted || wanted.has(queue)) && !unwanted.has(queue)
  for (const [{ queue, priority }] of cellsWhere(context.counters, passes))
    ranges.set(queue * 4 + priority, { queue, priority })
  return [...ranges.values()]
}

const inDueIndex = `FROM letters INDEXED BY letters_due
  WHERE queue = ? AND wait = ? AND priority = ? AND due_at`
const heads = `SELECT seq, hex(id), due_at ${inDueIndex} <= ? ORDER BY due_at, id LIMIT ?`
const firstDue = `SELECT due_at ${inDueIndex} IS NOT NULL ORDER BY due_at, id LIMIT 1`

/** The first due letters: the heads of all ranges, merged in the order of claims. */
function findCandidates(
  { db, nowMs }: StoreContext,
  ranges: readonly Range[],
  limit: number,
): Candidate[] {
  const found: Candidate[] = []
  for (const { queue, priority } of ranges)
    for (const place of [wait.ready, wait.leased])
      for (const [seq, id, dueMs] of db.all(heads, queue, place, priority, nowMs, limit))
        found.push({
          seq: seq as number,
          id: id as string,
          score: claimScore(priority, dueMs as number),
          isLapsed: place === wait.leased,
        })
  found.sort((a, b) => a.score - b.score || (a.id < b.id ? -1 : 1))
  return found.slice(0, limit)
}

function nextDue({ db }: StoreContext, ranges: readonly Range[]): number | undefined {
  let next: number | undefined
  for (const { queue, priority } of ranges)
    for (const place of [wait.ready, wait.leased]) {
      const dueMs = db.get(firstDue, queue, place, priority)?.[0] as number | undefined
      if (dueMs !== undefined && (next === undefined || dueMs < next)) next = dueMs
    }
  return next
}

const lease = `UPDATE letters SET state = 1, epoch = epoch + 1, retries = retries + 1,
  version = version + 1, retry_at = NULL, worker = ?, leased_until = ?, updated_at = ?, wait = 1,
  due_at = ? WHERE seq IN (SELECT value FROM json_each(?))`

/** The line of `lapse` in `letter/moves.ts`. */
const lapseLine = 'json_array(CAST(? AS INTEGER), worker, 2, 1, 1, epoch, NULL, leased_until)'
const lapse = `UPDATE letters SET ${appendLine(lapseLine)}
  WHERE seq IN (SELECT value FROM json_each(?)) AND worker IS NOT NULL AND leased_until IS NOT NULL`

/** Leases letters and counts their retries: `claim` of `letter/moves.ts` as a statement. */
function leaseLetters(
  context: StoreContext,
  some: readonly Candidate[],
  { worker, leaseMs }: ClaimRequest,
): SentLetter[] {
  const { db, nowMs } = context
  const lapsed = some.filter(({ isLapsed }) => isLapsed).map(({ seq }) => seq)
  if (lapsed.length > 0) db.run(lapse, nowMs, JSON.stringify(lapsed))
  const seqs = some.map(({ seq }) => seq)
  const end = leaseEnd(nowMs, leaseMs)
  db.run(lease, worker, end, nowMs, end, JSON.stringify(seqs))
  const letters = loadLetters(context, 'seq', seqs, 'whole')
  for (const [n, letter] of letters.entries()) countClaim(context, letter, some[n]!)
  return letters
}

function countClaim({ counters, queues }: StoreContext, row: SentLetter, by: Candidate): void {
  const next = countedOf(queues.number(row[after.queue] as string), row)
  counters.move({ ...next, state: by.isLapsed ? retrying : pending }, next)
  counters.total(claimed, next)
}
