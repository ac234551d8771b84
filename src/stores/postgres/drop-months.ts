import { actionCode, archived, resolved } from '../rows/codes.ts'
import { RedriveError } from '../../errors.ts'
import type { StoreContext } from './context.ts'
import { Deltas } from '../rows/deltas.ts'
import { writeDeltas } from './counters.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { lock } from './locks.ts'
import {
  boundsOf,
  isMonth,
  excludeOthers,
  monthOf,
  listMonths,
  partitionedTables,
  partitionsLock,
  readPartitions,
  tableOf,
} from './partitions.ts'
import { fromText } from './text.ts'

/** The result of `dropBefore`. */
export interface DroppedMonths {
  dropped: { month: string; letters: number }[]
  /**
   * Months that stay, with their number of letters that are neither resolved nor archived. 0: its
   * letters changed while the month was counted.
   */
  kept: { month: string; open: number }[]
}

/** Counting the letters of a month may take long, and blocks nobody. */
const countTimeoutMs = 600_000
const maxTries = 5

const removed = actionCode('remove')

/** Drops months before the given one, except the current month, which still receives letters. */
export async function dropBefore(context: StoreContext, before: string): Promise<DroppedMonths> {
  const { connection } = context
  if (!isMonth(before))
    throw new RedriveError(
      'INVALID_INPUT',
      `month must be like 2026-01 (year and month), got ${JSON.stringify(before)}`,
    )
  if ((await readPartitions((sql) => connection.read(sql))) === undefined)
    throw new RedriveError(
      'INVALID_CONFIG',
      `${connection.place}: the schema ${connection.schema} is not partitioned by month: remove letters by a filter`,
    )
  const present = monthOf(context.now() ?? context.clock.now())
  const months = await listMonths((sql, values) => connection.read(sql, values), connection)
  const answer: DroppedMonths = { dropped: [], kept: [] }
  for (const month of months.filter((one) => one < before && one < present)) {
    const { letters, open, gone } = await dropMonth(context, month).catch(
      async (error: unknown) => {
        const there = await listMonths((sql, values) => connection.read(sql, values), connection)
        if (there.includes(month)) throw error
        return { letters: 0, open: 0, gone: 'elsewhere' as const }
      },
    )
    if (gone === 'here') answer.dropped.push({ month, letters })
    else if (gone === undefined) answer.kept.push({ month, open })
  }
  return answer
}

interface Outcome {
  letters: number
  open: number
  /** Who dropped the month: this call or another process. Undefined: the month stays. */
  gone?: 'here' | 'elsewhere'
}

/**
 * Counts the letters while others continue to write. If none of them changed since, drops the month
 * and subtracts its counts in one transaction.
 */
async function dropMonth(context: StoreContext, month: string): Promise<Outcome> {
  const { connection } = context
  let outcome: Outcome = { letters: 0, open: await countOpen(connection, month) }
  for (let tries = 0; outcome.open === 0 && tries < maxTries; tries++) {
    const seen = await connection.transaction('cold', (tx) => watchChanges(tx, connection, month))
    if (seen === undefined) return { ...outcome, gone: 'elsewhere' }
    const { deltas, letters, open } = await countMonth(connection, month)
    outcome = { letters, open }
    if (open > 0) break
    const drop = (tx: Transaction, slot: number): Promise<Outcome['gone']> =>
      dropTables(tx, connection, month, seen, deltas, slot)
    const gone = await context.withSlot((slot) =>
      connection.transaction('cold', (tx) => drop(tx, slot)),
    )
    if (gone) return { ...outcome, gone }
  }
  return outcome
}

/** Uses the index of every queue, so that a month that must stay is not read completely. */
async function countOpen(connection: PostgresConnection, month: string): Promise<number> {
  const sql = `SELECT count(*) FROM @queues q JOIN @${tableOf('letters', month)} l
    ON l.queue = q.id AND l.state = ANY('{0,1,3,4}'::smallint[])`
  return (await connection.read(sql, [], { timeoutMs: countTimeoutMs }))[0]![0] as number
}

const isThere = async (
  tx: Transaction,
  connection: PostgresConnection,
  month: string,
): Promise<boolean> =>
  (await listMonths((sql, values) => tx.rows(sql, values), connection)).includes(month)

/** A number that changes when a letter of a watched month is written, before the write commits. */
const changes = 'SELECT last_value * 2 + is_called::int FROM @changes'

/**
 * Makes changes to letters of the month detectable, and returns the current change number, at a
 * time when no change is in progress.
 */
async function watchChanges(
  tx: Transaction,
  connection: PostgresConnection,
  month: string,
): Promise<unknown> {
  await lock(tx, connection, [partitionsLock])
  if (!(await isThere(tx, connection, month))) return undefined
  const table = tableOf('letters', month)
  void tx.rows('SET LOCAL lock_timeout = 2000')
  await tx.rows(`LOCK TABLE @${table} IN SHARE ROW EXCLUSIVE MODE`)
  const watched = `SELECT 1 FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgname = 'note_change'`
  if ((await tx.rows(watched, [`"${connection.schema}".${table}`])).length === 0)
    await tx.rows(`CREATE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE ON @${table}
      FOR EACH ROW EXECUTE FUNCTION @note_change()`)
  return (await tx.rows(changes))[0]![0]
}

interface Counted {
  deltas: Deltas
  letters: number
  open: number
}

type Parts = [queue: number, state: number, category: number, priority: number, policy: number]
type LetterCells = [...Parts, string, n: number, retries: number, most: number, backoffMs: number]

/** Collects the counts of the letters of a month, as `erase` does letter by letter. */
async function countMonth(connection: PostgresConnection, month: string): Promise<Counted> {
  const [letters, tags] = [tableOf('letters', month), tableOf('tags', month)]
  const columns = 'l.queue, l.state, l.category, l.priority, l.policy'
  const options = { timeoutMs: countTimeoutMs }
  const counted: Counted = { deltas: new Deltas(), letters: 0, open: 0 }
  const sql = `SELECT ${columns}, l.fingerprint, count(*), sum(l.retries)::bigint, max(l.retries), sum(l.backoff_ms)
    FROM @${letters} l GROUP BY ${columns}, l.fingerprint`
  for (const cells of (await connection.read(sql, [], options)) as LetterCells[]) {
    const [queue, state, category, priority, policy, group, n, retries, maxRetries, backoffMs] =
      cells
    const row = { state, category, priority, policy, fingerprint: fromText(group) }
    counted.deltas.count(queue, row, [], -n)
    counted.deltas.totals(queue, removed, priority, { n, retries, maxRetries, backoffMs })
    counted.letters += n
    if (state !== resolved && state !== archived) counted.open += n
  }
  const tagged = `SELECT ${columns}, t.tag, count(*) FROM @${tags} t JOIN @${letters} l ON l.id = t.id GROUP BY ${columns}, t.tag`
  for (const cells of (await connection.read(tagged, [], options)) as [
    ...Parts,
    string,
    number,
  ][]) {
    const [queue, state, category, priority, policy, tag, n] = cells
    counted.deltas.tag(queue, { state, category, priority, policy }, fromText(tag), -n)
  }
  return counted
}

const expectInMonth = `INSERT INTO @bodies (id, origin, origin_crc, bytes_crc)
  SELECT DISTINCT id::uuid, '', 0, 0 FROM @deps WHERE id >= $1 AND id < $2 ON CONFLICT DO NOTHING`

async function dropTables(
  tx: Transaction,
  connection: PostgresConnection,
  month: string,
  seen: unknown,
  deltas: Deltas,
  slot: number,
): Promise<Outcome['gone']> {
  await lock(tx, connection, [partitionsLock])
  if (!(await isThere(tx, connection, month))) return 'elsewhere'
  await excludeOthers(tx)
  if ((await tx.rows(changes))[0]![0] !== seen) return undefined
  const names = partitionedTables.map((table) => `@${tableOf(table, month)}`)
  void tx.rows('DELETE FROM @deps WHERE letter >= $1::uuid AND letter < $2::uuid', boundsOf(month))
  void tx.rows(`DROP TABLE ${names.join(', ')}`)
  // Others may wait for letters of the month: see `waits.ts`.
  void tx.rows(expectInMonth, boundsOf(month))
  writeDeltas(tx, slot, deltas.changed())
  return 'here'
}
