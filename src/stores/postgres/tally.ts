import type { LetterFilter } from '../../letter/query.ts'
import type { TallyKey } from '../../store.ts'
import { needsReading } from '../rows/source-key.ts'
import {
  codeCondition,
  groupValueOf,
  groupValueSql,
  grow,
  hasCounts,
  isGroupKey,
  isUncounted,
  listed,
  valuesOf,
  wordOf,
  type CodedKey,
  type GroupKey,
  type UncountedKey,
} from '../rows/tally.ts'
import type { StoreContext } from './context.ts'
import { readCells, readGroupCells, readNamedCounts } from './counters.ts'
import { cellTest, codesOf, conditionOf, type Codes } from './filter.ts'
import { planQuery, scanLetters } from './find.ts'
import { fromText } from './text.ts'

type Counted = Map<string, number>
type CellKey = CodedKey | 'queue'

/** A count that reads every letter may take long, and blocks nobody. */
const scanTimeoutMs = 120_000
const stepLetters = 500

/** Counts from the counters if possible, otherwise letter by letter. */
export async function tally(
  context: StoreContext,
  by: TallyKey,
  filter: LetterFilter,
): Promise<Counted> {
  if (isUncounted(by) || needsReading(filter)) return countByReading(context, by, filter)
  if (!hasCounts(by, filter)) return countByScan(context, by, filter)
  const codes = await codesOf(context, filter)
  const passes = cellTest(codes)
  if (filter.group !== undefined && by !== 'tag')
    return countGroups(context, by, filter.group, codes)
  if (isGroupKey(by) || by === 'tag')
    return readNamedCounts(context.connection, by, codeCondition(codes), codes.queues)
  const cells = await readCells((sql, values) => context.connection.read(sql, values))
  const nameOf = await context.queues.names(cells.map(([{ queue }]) => queue))
  const counted: Counted = new Map()
  for (const [cell, n] of cells) if (passes(cell)) grow(counted, valueOf(by, cell[by], nameOf), n)
  return counted
}

/** Counts letters of some groups. */
async function countGroups(
  { connection, queues }: StoreContext,
  by: CellKey | GroupKey,
  groups: string | string[],
  codes: Codes,
): Promise<Counted> {
  const passes = cellTest(codes)
  const cells = await readGroupCells(connection, listed(groups), codes.queues)
  const nameOf = await queues.names(cells.map(({ cell }) => cell.queue))
  const counted: Counted = new Map()
  for (const { group, cell, n } of cells)
    if (passes(cell))
      grow(
        counted,
        isGroupKey(by) ? groupValueOf(by, group, cell.state) : valueOf(by, cell[by], nameOf),
        n,
      )
  return counted
}

const columns: Record<Exclude<TallyKey, UncountedKey>, string> = {
  queue: 'l.queue',
  state: 'l.state',
  category: 'l.category',
  priority: 'l.priority',
  policy: 'l.policy',
  group: 'l.fingerprint',
  groupState: groupValueSql('groupState', 'l.state', 'l.fingerprint'),
  tag: 't.tag',
}

async function countByScan(
  context: StoreContext,
  by: keyof typeof columns,
  filter: LetterFilter,
): Promise<Counted> {
  const values: unknown[] = []
  const condition = conditionOf(filter, await codesOf(context, filter), values)
  const tags = by === 'tag' ? 'CROSS JOIN LATERAL (SELECT DISTINCT unnest(l.tags) AS tag) AS t' : ''
  const sql = `SELECT ${columns[by]}, count(*) FROM @letters l ${tags} WHERE ${condition} GROUP BY 1`
  const rows = (await context.connection.read(sql, values, { timeoutMs: scanTimeoutMs })) as [
    number | string,
    number,
  ][]
  const nameOf = await context.queues.names(
    by === 'queue' ? rows.map(([queue]) => queue as number) : [],
  )
  const counted: Counted = new Map()
  for (const [value, n] of rows)
    grow(
      counted,
      typeof value === 'string' ? fromText(value) : valueOf(by as CellKey, value, nameOf),
      n,
    )
  return counted
}

/** Reads every letter, for keys and filters that no column has. */
async function countByReading(
  context: StoreContext,
  by: TallyKey,
  filter: LetterFilter,
): Promise<Counted> {
  const counted: Counted = new Map()
  const query = await planQuery(context, filter, 'oldest')
  for await (const letters of scanLetters(context, query, stepLetters))
    for (const letter of letters) for (const value of valuesOf(letter, by)) grow(counted, value, 1)
  return counted
}

function valueOf(by: CellKey, code: number, nameOf: (queue: number) => string): string {
  return by === 'queue' ? nameOf(code) : wordOf(by, code)
}
