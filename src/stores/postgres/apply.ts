import { crc32 } from 'node:zlib'
import { isUnknownOutcome } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import type { ApplyResult, LeaseRef } from '../../store.ts'
import { groupChanges, type ChangeGroup, type RowChange } from '../rows/change.ts'
import { isActiveCode, resolved, retrying } from '../rows/codes.ts'
import type { Column } from '../rows/columns.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import { isAnyDue, lastMs, nowMs, wholeMs, type StoreContext } from './context.ts'
import { lockLanes } from './locks.ts'
import { joinColumn, tableOf } from './rows.ts'
import { joinIds, joinNumbers, joinTexts, splitTexts, toJsonText } from './text.ts'
import { updateStatement, type UpdateShape } from './update.ts'
import { releaseDependents, settleLanes, type Lane } from './waits.ts'

type Indexed = ChangeGroup['changes'][number]

/**
 * Writes the changes whose guard holds. Changes of one shape are one statement. A letter that it
 * leaves out is in a lane, or others depend on it, or its guard does not hold: a transaction
 * decides.
 */
export async function applyChanges(
  context: StoreContext,
  changes: readonly RowChange[],
): Promise<ApplyResult[]> {
  const results: ApplyResult[] = changes.map(() => 'missing')
  for (const round of groupChanges(changes)) {
    const left: Indexed[] = []
    let lost: unknown
    for (const group of round.flatMap(splitByCounts)) {
      const written = await applyPlainly(context, group).catch((error: unknown) => {
        if (!isUnknownOutcome(error)) throw error
        lost = error
        return new Set<number>()
      })
      for (const [n, one] of group.changes.entries())
        if (written.has(n)) results[one.index] = 'written'
        else if (isLetterId(one.change.id)) left.push(one)
    }
    if (left.length > 0) await applyInTransaction(context, left, results)
    // Whether the statement whose answer was lost wrote the others is unknown.
    if (lost && left.some(({ index }) => results[index] !== 'written')) throw lost
  }
  return results
}

/**
 * One statement counts all its letters under the same actions. It locks them in the order of their
 * ids, so that two statements with the same letters never wait for each other.
 */
function splitByCounts(group: ChangeGroup): ChangeGroup[] {
  const sorted = group.changes.toSorted((a, b) => (a.change.id < b.change.id ? -1 : 1))
  const parts = Map.groupBy(sorted, ({ change }) => change.counts.join())
  return [...parts.values()].map((changes) => ({ ...group, changes }))
}

/** Columns whose change needs more than the row. */
const related: readonly Column[] = ['tags', 'edit', 'priority']

const isPlain = ({ columns }: ChangeGroup): boolean =>
  !columns.some((column) => related.includes(column))

/** Writes letters that nothing else waits for. Returns the positions of those that were written. */
async function applyPlainly(context: StoreContext, group: ChangeGroup): Promise<Set<number>> {
  if (!isPlain(group)) return new Set()
  if (group.changes.some(({ change }) => !isLetterId(change.id))) return new Set()
  const rows = await context.withSlot((slot) => {
    const { sql, values } = statementOf(group, slot, 'plain')
    return context.connection.execute(sql, values)
  })
  const written = new Set(rows.map(([n]) => (n as number) - 1))
  if (group.due === 'ready')
    wakeIfDue(
      context,
      group.changes
        .filter((_, n) => written.has(n))
        .map(({ change }) => change.set.due_at as number),
    )
  return written
}

function wakeIfDue(context: StoreContext, dueTimes: readonly (number | null)[]): void {
  if (isAnyDue(context, dueTimes)) context.wake()
}

const guards = {
  epoch:
    'l.state = 1 AND l.epoch = x.guard_epoch AND (x.guard_worker IS NULL OR l.worker = x.guard_worker)',
  version: 'l.version = x.guard_version',
}

/** Neither a lane nor dependents follow the letter. */
const plain = (hasState: boolean): string =>
  hasState ? 'l.lane IS NULL AND (x.state <> 2 OR NOT l.depended)' : 'l.lane IS NULL'

const returned = {
  plain: { returning: ', x.n::int AS n', select: 'n' },
  whole: {
    returning: ', x.n::int AS n, l.lane, l.state, l.depended, l.wait, l.due_at',
    select: 'n, lane, old_code / 512, state, depended, wait, due_at, queue, priority',
  },
}

const statements = new Map<string, string>()

/** The statement for a group, and its parameters. */
function statementOf(
  group: ChangeGroup,
  slot: number,
  mode: 'plain' | 'whole',
): { sql: string; values: unknown[] } {
  const { columns, due, changes } = group
  const kind = 'epoch' in changes[0]!.change.guard ? 'epoch' : 'version'
  const sentColumns = [...guardColumns(group, kind), ...valueColumns(group)]
  const names = sentColumns.map(([name]) => name)
  const key = [mode, kind, due, columns, names].join(' ')
  let sql = statements.get(key)
  if (sql === undefined) {
    const sent = new Set(names)
    const shape: UpdateShape = {
      source: tableOf(names, 'x', undefined, true),
      values: new Map(columns.map((column) => [column, sent.has(column) ? 'x' : 'null'])),
      due,
      also: sent.has('size') ? ['size = x.size'] : [],
      guard: mode === 'plain' ? `${guards[kind]} AND ${plain(sent.has('state'))}` : guards[kind],
      oldState: kind === 'epoch' ? `${retrying}` : undefined,
      actions: `$${names.length + 2}::int[]`,
      slot: `$${names.length + 1}`,
      ...(mode === 'plain' ? returned.plain : returned.whole),
    }
    sql = updateStatement(shape)
    statements.set(key, sql)
  }
  return {
    sql,
    values: [
      ...sentColumns.map(([, param]) => param),
      slot,
      `{${changes[0]!.change.counts.join()}}`,
    ],
  }
}

/** A column that is sent, and its parameter. */
type SentColumn = [name: string, param: string | null]

function guardColumns({ changes }: ChangeGroup, kind: keyof typeof guards): SentColumn[] {
  const column = (
    name: string,
    value: (change: RowChange) => number | string | null,
  ): SentColumn => [name, joinColumn(name, changes, ({ change }) => value(change))]
  const common = [column('id', ({ id }) => id), column('entry', ({ entry }) => entry)]
  if (kind === 'version')
    return [
      ...common,
      column('guard_version', ({ guard }) => (guard as { version: number }).version),
    ]
  const leaseOf = ({ guard }: RowChange): Omit<LeaseRef, 'id'> => guard as Omit<LeaseRef, 'id'>
  return [
    ...common,
    column('guard_epoch', (change) => leaseOf(change).epoch),
    column('guard_worker', (change) => encodeWorker(leaseOf(change))),
  ]
}

const encodeWorker = ({ worker }: { worker?: string }): string | null =>
  worker === undefined ? null : toJsonText(worker)

/** The new values, except of columns that are null in every row. */
function valueColumns({ columns, changes }: ChangeGroup): SentColumn[] {
  const sent = columns.map((name): SentColumn => [
    name,
    joinColumn(name, changes, ({ change }) => change.set[name] ?? null),
  ])
  if (columns.includes('edit'))
    sent.push([
      'size',
      joinColumn('size', changes, ({ change }) => change.bytes?.byteLength ?? null),
    ])
  return sent.filter(([, param]) => param !== null)
}

const lockRows = 'SELECT id FROM @letters l WHERE l.id = ANY($1::uuid[]) ORDER BY l.id FOR UPDATE'

/** Writes changes of distinct letters with all that follows, in one transaction. */
async function applyInTransaction(
  context: StoreContext,
  left: readonly Indexed[],
  results: ApplyResult[],
): Promise<void> {
  const { connection } = context
  const dueTimes = await context.withSlot((slot) =>
    connection.transaction('hot', (tx) => applyIn(context, tx, left, slot, results)),
  )
  wakeIfDue(context, dueTimes)
}

interface Follow {
  lanes: Lane[]
  resolved: string[]
  dueTimes: (number | null)[]
}

async function applyIn(
  context: StoreContext,
  tx: Transaction,
  left: readonly Indexed[],
  slot: number,
  results: ApplyResult[],
): Promise<(number | null)[]> {
  const ids = joinIds(left.map(({ change }) => change.id))
  lockLanes(tx, context.connection, ids)
  const known = new Set((await tx.rows(lockRows, [ids])).map(([id]) => id))
  const follow: Follow = { lanes: [], resolved: [], dueTimes: [] }
  for (const { index, change } of left)
    results[index] = known.has(change.id) ? 'conflict' : 'missing'
  const groups = groupChanges(left.map(({ change }) => change))
    .flat()
    .flatMap(splitByCounts)
  for (const group of groups)
    for (const one of await applyGroup(context, tx, group, slot, follow))
      results[left[one.index]!.index] = 'written'
  const freed = await releaseDependents(tx, context.connection, follow.resolved)
  const heads = await settleLanes(tx, [...follow.lanes, ...freed.lanes])
  return [...follow.dueTimes, ...freed.dueTimes, ...heads]
}

/** Writes the changes of one shape, and collects what follows from them. */
async function applyGroup(
  context: StoreContext,
  tx: Transaction,
  group: ChangeGroup,
  slot: number,
  follow: Follow,
): Promise<Indexed[]> {
  const { sql, values } = statementOf(group, slot, 'whole')
  const written: Indexed[] = []
  const ranges: { queue: number; priority: number }[] = []
  for (const cells of await tx.rows(sql, values)) {
    const [n, lane, from, to, depended, place, dueAt, queue, priority] = cells as WrittenCells
    const one = group.changes[n - 1]!
    written.push(one)
    if (lane !== null && group.due && (isActiveCode(from) || isActiveCode(to)))
      follow.lanes.push({ queue, lane })
    if (to === resolved && from !== resolved && depended) follow.resolved.push(one.change.id)
    if (place === 0) follow.dueTimes.push(dueAt)
    ranges.push({ queue, priority })
  }
  if (group.columns.includes('priority')) await context.queues.ranges(ranges, tx)
  const changes = written.map(({ change }) => change)
  if (group.columns.includes('tags')) replaceTags(tx, changes)
  writeEdits(
    tx,
    changes.flatMap(({ id, bytes }) => (bytes ? [{ id, bytes }] : [])),
  )
  return written
}

type WrittenCells = [
  n: number,
  lane: string | null,
  from: number,
  to: number,
  depended: boolean,
  wait: number | null,
  dueAt: number | null,
  queue: number,
  priority: number,
]

const dropTags = 'DELETE FROM @tags t USING @letters l WHERE l.id = ANY($1::uuid[]) AND t.id = l.id'
const addTags = `INSERT INTO @tags SELECT DISTINCT t.tag, l.id FROM @letters l CROSS JOIN LATERAL unnest(l.tags) AS t(tag)
  WHERE l.id = ANY($1::uuid[]) ON CONFLICT DO NOTHING`

function replaceTags(tx: Transaction, changes: readonly RowChange[]): void {
  const ids = [joinIds(changes.map(({ id }) => id))]
  void tx.rows(dropTags, ids)
  void tx.rows(addTags, ids)
}

const writeEdit = 'UPDATE @bodies SET edit_crc = $2, edit = $3 WHERE id = $1::uuid'

/** Sent one by one: edits are few, and a single payload is sent as binary. */
export function writeEdits(
  tx: Transaction,
  edits: readonly { id: string; bytes: Uint8Array }[],
): void {
  for (const { id, bytes } of edits) void tx.rows(writeEdit, [id, crc32(bytes), bytes])
}

/** A lease to renew, and its new length. */
export interface Renewal extends LeaseRef {
  leaseMs: number
}

const renew = `WITH t AS MATERIALIZED (SELECT ${nowMs('$5')} AS ms),
  good AS (
    SELECT x.n, x.id, least(t.ms + x.lease_ms, ${lastMs}) AS until FROM t CROSS JOIN (
      SELECT r.n, r.id, r.lease_ms FROM unnest($1::uuid[], $2::bigint[], ${splitTexts('$3')}, $4::bigint[]) WITH ORDINALITY
        AS r(id, epoch, worker, lease_ms, n) JOIN @letters l ON l.id = r.id
      WHERE l.state = 1 AND l.leased_until IS NOT NULL AND l.epoch = r.epoch AND (r.worker IS NULL OR r.worker = l.worker)
      ORDER BY l.id FOR UPDATE OF l) AS x),
  moved AS (
    UPDATE @letters l SET due_at = g.until, leased_until = g.until
    FROM (SELECT id, max(until) AS until FROM good GROUP BY id ORDER BY id) AS g
    WHERE l.id = g.id AND l.due_at < g.until)
  SELECT n::int FROM good`

/** Extends leases that still hold, and never shortens them, in one statement. */
export async function renewLeases(
  context: StoreContext,
  renewals: readonly Renewal[],
): Promise<boolean[]> {
  const held = renewals.filter(({ id }) => isLetterId(id))
  if (held.length === 0) return renewals.map(() => false)
  const values = [
    joinIds(held.map(({ id }) => id)),
    joinNumbers(held, ({ epoch }) => epoch),
    joinTexts(held, encodeWorker),
    joinNumbers(held, ({ leaseMs }) => wholeMs(leaseMs)),
    context.now(),
  ]
  const rows = await context.connection.execute(renew, values, { repeatable: true })
  const good = new Set(rows.map(([n]) => held[(n as number) - 1]))
  return renewals.map((renewal) => good.has(renewal))
}
