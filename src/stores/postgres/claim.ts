import { ageingMs } from '../../letter/order.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { Claim, ClaimRequest } from '../../store.ts'
import { actionCode, retrying } from '../rows/codes.ts'
import { decodeLetter } from '../rows/decode.ts'
import { lastMs, nowMs, wholeMs, type StoreContext } from './context.ts'
import { countMoves } from './counters.ts'
import { codeOf, loadedColumns, loadLetter, queueIn } from './rows.ts'
import { toJsonText } from './text.ts'
import { appendLine } from './update.ts'

/** Limits of one claim, in letters and payload bytes, to bound memory. */
const maxClaimLetters = 1000
const maxClaimBytes = 64 * 2 ** 20

/**
 * How many candidates a claim reads: twice its limit and some more, since another claim may hold
 * the first ones; if that is not enough, four times as many, and so on.
 */
const spareHeads = 64
const widenings = [1, 4, 16, 64]

/** Selects queues by number: $1 the included queues or null, $2 the excluded ones. */
const ranges = `@ranges r CROSS JOIN (VALUES (0::smallint), (1::smallint)) AS w(wait)`
const asked = `($1::int[] IS NULL OR r.queue = ANY($1::int[])) AND r.queue <> ALL($2::int[])`

const claimed = actionCode('claim')

/** The line of `lapse` in `letter/moves.ts`; the worker is stored as JSON text. */
const lapseLine = `'[' || t.ms || ',"' || u.worker || '",${claimed},${retrying},${retrying},' || u.epoch || ',null,' || u.leased_until || ']'`
const lapsed = 'u.worker IS NOT NULL AND u.leased_until IS NOT NULL'
const appended = appendLine('u.history', lapseLine)

/**
 * The first letters of every range, merged in claim order, are read without locks; the claim takes
 * the first of them that are not locked. At most `limit` rows are locked: each row is locked by its
 * own lookup, and the limit ends the lookups.
 */
const claimDue = `WITH t AS MATERIALIZED (SELECT ${nowMs('$3')} AS ms),
  heads AS MATERIALIZED (
    SELECT h.id, h.score, h.size FROM t, ${ranges} CROSS JOIN LATERAL (
      SELECT l.id, l.due_at + r.priority::bigint * ${ageingMs} AS score, l.size FROM @letters l
      WHERE l.queue = r.queue AND l.wait = w.wait AND l.priority = r.priority AND l.due_at <= t.ms
      ORDER BY l.due_at, l.id LIMIT $4) AS h
    WHERE ${asked}),
  best AS MATERIALIZED (
    SELECT id, score FROM (SELECT id, score, sum(size) OVER (ORDER BY score, id) - size AS before FROM heads) AS s
    WHERE before <= ${maxClaimBytes} ORDER BY score, id),
  due AS MATERIALIZED (
    SELECT x.*, b.score FROM best b CROSS JOIN t CROSS JOIN LATERAL (
      SELECT l.id, ${codeOf('l')} AS old_code FROM @letters l
      WHERE l.id = b.id AND l.wait < 2 AND l.due_at <= t.ms LIMIT 1 FOR UPDATE SKIP LOCKED) AS x
    LIMIT $5),
  c AS (
    UPDATE @letters u SET state = ${retrying}, epoch = u.epoch + 1, retries = u.retries + 1, version = u.version + 1,
      retry_at = NULL, worker = $6, leased_until = least(t.ms + $7::bigint, ${lastMs}), updated_at = t.ms,
      wait = 1, due_at = least(t.ms + $7::bigint, ${lastMs}),
      history = CASE WHEN ${lapsed} THEN ${appended.history} ELSE u.history END,
      omitted = CASE WHEN ${lapsed} THEN u.omitted + ${appended.omitted} ELSE u.omitted END
    FROM due CROSS JOIN t WHERE u.id = due.id
    RETURNING u.*, due.old_code, due.score),
  m AS (SELECT queue, old_code, ${codeOf('c')} AS new_code, fingerprint AS old_group, fingerprint AS new_group,
    tags AS old_tags, tags AS new_tags, priority, retries, backoff_ms FROM c),
  ${countMoves({ from: 'm', actions: `ARRAY[${claimed}]`, slot: '$8' })}
  SELECT n.seen, c.score, c.size, ${loadedColumns('c', 'b', 'whole')}
  FROM (SELECT count(*)::int AS seen FROM heads) AS n LEFT JOIN c ON true
    LEFT JOIN @bodies b ON b.id = c.id
  ORDER BY c.score, c.id`

/** The cells before those of the letter. */
const [seenCell, sizeCell, firstCell] = [0, 2, 3]

const nextDue = `SELECT min(h.due_at) FROM ${ranges} CROSS JOIN LATERAL (
    SELECT l.due_at FROM @letters l
    WHERE l.queue = r.queue AND l.wait = w.wait AND l.priority = r.priority AND l.due_at IS NOT NULL
    ORDER BY l.due_at, l.id LIMIT 1) AS h
  WHERE ${asked}`

/** The numbers of the included queues, null for all, and of the excluded ones. */
type Queues = [asked: number[] | null, except: number[]]

async function queuesOf(context: StoreContext, { queues, except }: ClaimRequest): Promise<Queues> {
  const numbers = await context.queues.find([...(queues ?? []), ...(except ?? [])])
  const some = (names: readonly string[]): number[] =>
    names.flatMap((name) => (numbers.has(name) ? [numbers.get(name)!] : []))
  return [queues ? some(queues) : null, some(except ?? [])]
}

/** Leases letters: one statement, and one more for the next due time if letters are few. */
export async function claim(context: StoreContext, request: ClaimRequest): Promise<Claim> {
  const queues = await queuesOf(context, request)
  const letters = await claimLetters(context, request, queues)
  if (letters.length >= request.limit) return { letters }
  // If this answer is lost, the claim stands, without the next due time.
  const rows = await context.connection
    .read(nextDue, queues, { side: 'hot' })
    .catch((): Cells[] => [[null]])
  const next = rows[0]![0] as number | null
  return next === null ? { letters } : { letters, nextDueAt: toTimestamp(next) }
}

async function claimLetters(
  context: StoreContext,
  request: ClaimRequest,
  queues: Queues,
): Promise<DeadLetter[]> {
  const limit = Math.min(request.limit, maxClaimLetters)
  const [worker, leaseMs] = [toJsonText(request.worker), wholeMs(request.leaseMs)]
  const taken: Cells[] = []
  let bytes = 0
  for (const widening of limit > 0 ? widenings : []) {
    const left = limit - taken.length
    const heads = (2 * left + spareHeads) * widening
    const rows = await context
      .withSlot((slot) => {
        const values = [...queues, context.now(), heads, left, worker, leaseMs, slot]
        // If the answer is lost, the leases of the first try lapse, whether it is repeated or not.
        return context.connection.execute(claimDue, values, { repeatable: true })
      })
      .catch((error: unknown) => {
        // What was claimed before stands.
        if (taken.length === 0) throw error
        return undefined
      })
    if (!rows) break
    const seen = rows[0]![seenCell] as number
    const got = rows.filter((cells) => cells[firstCell] !== null)
    taken.push(...got)
    bytes += got.reduce((sum, cells) => sum + (cells[sizeCell] as number), 0)
    // There can be more only if another claim holds letters that this one read.
    const more = got.length < left && got.length < seen && seen >= heads
    if (!more || bytes > maxClaimBytes) break
  }
  const nameOf = await context.queues.names(taken.map((cells) => queueIn(cells, firstCell)))
  return taken.map((cells) =>
    decodeLetter(loadLetter(cells, nameOf(queueIn(cells, firstCell)), firstCell)),
  )
}
