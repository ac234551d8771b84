import type { TallyKey } from '../../store.ts'
import { severities } from '../rows/codes.ts'
import {
  cellCodes,
  codeCondition,
  groupValueOf,
  groupValueSql,
  grow,
  hasCounts,
  isGroupKey,
  listed,
  wordOf,
  type CodedKey,
} from '../rows/tally.ts'
import type { StoreContext } from './context.ts'
import { cellsWhere, groupCells, namedCounts } from './counters.ts'
import { cellTest, queuesOf } from './filter.ts'
import { scan } from './find.ts'
import type { Methods } from './protocol.ts'

type CellKey = CodedKey | 'queue'

/** Number of letters that one step counts. */
const lettersPerStep = 500

/** Uses the maintained counts if they suffice; otherwise scans letters in steps. */
export function* tally(
  context: StoreContext,
  { by, filter }: Methods['tally']['request'],
): Generator<undefined, Methods['tally']['response']> {
  const counted = new Map<string, number>()
  if (!hasCounts(by, filter)) {
    for (const { found, next } of scan(context, { filter, order: 'oldest' }, lettersPerStep)) {
      const seqs = JSON.stringify(found.map(({ item }) => item))
      for (const [value, n] of context.db.all(countBy[by], seqs))
        grow(counted, nameOf(context, by, value as number | string), n as number)
      if (next) yield
    }
    return [...counted]
  }
  const passes = cellTest(context, filter)
  if (filter.group !== undefined) {
    for (const { group, cell, n } of groupCells(context.db, listed(filter.group)))
      if (passes(cell))
        grow(
          counted,
          isGroupKey(by)
            ? groupValueOf(by, group, cell.state)
            : nameOf(context, by, cell[by as CellKey]),
          n,
        )
    return [...counted]
  }
  if (isGroupKey(by) || by === 'tag') {
    const codes = codeCondition(cellCodes(filter))
    return [...namedCounts(context.db, by, codes, queuesOf(context, filter))]
  }
  for (const [cell, n] of cellsWhere(context.counters, passes))
    grow(counted, nameOf(context, by, cell[by]), n)
  return [...counted]
}

function countColumn(column: string): string {
  return `SELECT ${column}, count(*) FROM json_each(?) AS found
    CROSS JOIN letters ON letters.seq = found.value GROUP BY 1`
}

/** Counts letters by their values. Damaged letters are counted as they are decoded. */
const countBy: Record<TallyKey, string> = {
  queue: countColumn('queue'),
  state: countColumn('state'),
  category: countColumn('category'),
  priority: countColumn('priority'),
  policy: countColumn('policy'),
  severity: countColumn('severity'),
  group: countColumn('fingerprint'),
  groupState: countColumn(groupValueSql('groupState', 'state', 'fingerprint')),
  source: `SELECT coalesce(iif(json_valid(origin), origin ->> '$.source.kind', NULL), 'operation'), count(*)
    FROM json_each(?) AS found LEFT JOIN bodies ON bodies.seq = found.value GROUP BY 1`,
  tag: `SELECT tag.value, count(DISTINCT letters.seq) FROM json_each(?) AS found
    CROSS JOIN letters ON letters.seq = found.value
    CROSS JOIN json_each(iif(json_valid(tags), tags, '[]')) AS tag GROUP BY 1`,
}

/** The name of a value that letters are counted by. */
function nameOf(context: StoreContext, by: TallyKey, value: number | string): string {
  if (typeof value === 'string') return value
  if (by === 'queue') return context.queues.name(value)
  return by === 'severity' ? (severities[value] ?? 'medium') : wordOf(by as CodedKey, value)
}
