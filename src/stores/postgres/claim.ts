import { ageingMs } from '../../letter/order.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { Claim, ClaimRequest } from '../../store.ts'
import { actionCode, retrying } from '../rows/codes.ts'
import { decodeLetter } from '../rows/decode.ts'
import { lastMs, nowMs, wholeMs, type StoreContext } from './context.ts'
import { countMoves } from './counters.ts'
import { codeOf, loadedColumns, readColumns, loadLetter, queueIn } from './rows.ts'
import { toJsonText } from './text.ts'
import { appendLine } from './update.ts'

/** Limits of one claim, in letters and payload bytes, to bound memory. */
const maxClaimLetters = 1000
const maxClaimBytes = 64 * 2 ** 20

/**
 * How many letters a claim merges, as a multiple of its limit: if another claim holds some of them,
 * four times as many, and so on.
 */
const widenings = [1, 4, 16, 64]

/** The ranges of the queues with numbers in $1, of all if it is null, except those in $2. */
const ranges = `SELECT r.queue, w.wait, r.priority FROM @ranges r CROSS JOIN (VALUES (0::smallint), (1::smallint)) AS w(wait)
  WHERE ($1::int[] IS NULL OR r.queue = ANY($1::int[])) AND r.queue <> ALL($2::int[])`
const inRange = 'l.queue = r.queue AND l.wait = r.wait AND l.priority = r.priority'

const score = `l.due_at + l.priority::bigint * ${ageingMs}`

const claimed = actionCode('claim')

/** The line of `lapse` in `letter/moves.ts`; the worker is stored as JSON text. */
const lapseLine = `'[' || t.ms || ',"' || u.worker || '",${claimed},${retrying},${retrying},' || u.epoch || ',null,' || u.leased_until || ']'`
const lapsed = 'u.worker IS NOT NULL AND u.leased_until IS NOT NULL'
const appended = appendLine('u.history', lapseLine)

/**
 * Letters are locked in the order of each range, except those that another claim has locked. If
 * several ranges have due letters, their first letters are merged in claim order without locks, and
 * as many letters of each range are locked as are among the first ones. A letter that changed since
 * the statement began is not found at its place, and left for the next claim.
 */
const claimDue = `WITH t AS MATERIALIZED (SELECT ${nowMs('$3')} AS ms),
  r AS MATERIALIZED (
    SELECT r.* FROM t CROSS JOIN (${ranges}) AS r CROSS JOIN LATERAL (
      SELECT FROM @letters l WHERE ${inRange} AND l.due_at <= t.ms ORDER BY l.due_at, l.id LIMIT 1) AS h),
  shares AS MATERIALIZED (
    SELECT queue, wait, priority, NULL AS n, 0 AS first FROM r WHERE (SELECT count(*) FROM r) = 1
    UNION ALL SELECT queue, wait, priority, count(*), min(score) FROM (
      SELECT r.*, h.score FROM t CROSS JOIN r CROSS JOIN LATERAL (
        SELECT ${score} AS score, l.id FROM @letters l WHERE ${inRange} AND l.due_at <= t.ms
        ORDER BY l.due_at, l.id LIMIT $4) AS h
      WHERE (SELECT count(*) FROM r) > 1 ORDER BY h.score, h.id LIMIT $4) AS s
    GROUP BY 1, 2, 3),
  due AS MATERIALIZED (
    SELECT d.* FROM t CROSS JOIN (SELECT * FROM shares ORDER BY first) AS r CROSS JOIN LATERAL (
      SELECT l.ctid, l.id, l.size, l.state AS old_state, ${score} AS score FROM @letters l
      WHERE ${inRange} AND l.due_at <= t.ms
      ORDER BY l.due_at, l.id LIMIT r.n FOR UPDATE SKIP LOCKED) AS d
    LIMIT $5),
  c AS (
    UPDATE @letters u SET state = ${retrying}, epoch = u.epoch + 1, retries = u.retries + 1, version = u.version + 1,
      retry_at = NULL, worker = $6, leased_until = least(t.ms + $7::bigint, ${lastMs}), updated_at = t.ms,
      wait = 1, due_at = least(t.ms + $7::bigint, ${lastMs}),
      history = CASE WHEN ${lapsed} THEN ${appended.history} ELSE u.history END,
      omitted = CASE WHEN ${lapsed} THEN u.omitted + ${appended.omitted} ELSE u.omitted END
    FROM t CROSS JOIN (
      SELECT *, sum(size::float8) OVER (ORDER BY score, id ROWS UNBOUNDED PRECEDING) - size AS before FROM due) AS d
    WHERE u.ctid = d.ctid AND u.id = d.id AND d.before <= ${maxClaimBytes}
    RETURNING ${readColumns('u')}, u.size, d.old_state, d.score),
  m AS NOT MATERIALIZED (SELECT queue, ${codeOf('c', 'c.old_state')} AS old_code, ${codeOf('c')} AS new_code,
    fingerprint AS old_group, fingerprint AS new_group, tags AS old_tags, tags AS new_tags, priority, retries, backoff_ms
    FROM c),
  ${countMoves({ from: 'm', actions: `ARRAY[${claimed}]`, slot: '$8' })}
  SELECT n.seen, c.score, c.id, c.size, ${loadedColumns('c', 'b', 'whole')}
  FROM (SELECT sum(n)::int AS seen FROM shares) AS n LEFT JOIN c ON true
    LEFT JOIN @bodies b ON b.id = c.id`

/** The cells before those of the letter. */
const [seenCell, scoreCell, idCell, sizeCell, firstCell] = [0, 1, 2, 3, 4]

const nextDue = `SELECT min(h.due_at) FROM (${ranges}) AS r CROSS JOIN LATERAL (
    SELECT l.due_at FROM @letters l WHERE ${inRange} AND l.due_at IS NOT NULL
    ORDER BY l.due_at, l.id LIMIT 1) AS h`

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
    const heads = left * widening
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
    const seen = rows[0]![seenCell] as number | null
    const got = rows.filter((cells) => cells[idCell] !== null)
    taken.push(...got)
    bytes += got.reduce((sum, cells) => sum + (cells[sizeCell] as number), 0)
    // There can be more only if another claim holds letters that this one merged.
    const more = seen !== null && seen >= heads && got.length < left
    if (!more || bytes > maxClaimBytes) break
  }
  taken.sort(byScore)
  const nameOf = await context.queues.names(taken.map((cells) => queueIn(cells, firstCell)))
  return taken.map((cells) =>
    decodeLetter(loadLetter(cells, nameOf(queueIn(cells, firstCell)), firstCell)),
  )
}

function byScore(a: Cells, b: Cells): number {
  const difference = (a[scoreCell] as number) - (b[scoreCell] as number)
  return difference || ((a[idCell] as string) < (b[idCell] as string) ? -1 : 1)
}
