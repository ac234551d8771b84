import type { Column } from '../rows/columns.ts'
import type { RowChange } from '../rows/change.ts'
import { maxHistory } from '../../letter/history.ts'
import { countMoves } from './counters.ts'
import { seemsRare } from './planner.ts'
import { codeOf, valueOf } from './rows.ts'

/** What an update writes, and to which letters. */
export interface UpdateShape {
  /** SQL for the table `x` with the `id` of each letter, its `entry`, and the new values. */
  source: string
  /** Columns with new values. `null`: the value is null in every row, and not in the source. */
  values: ReadonlyMap<Column, 'x' | 'null'>
  due: RowChange['due']
  /** SQL for further assignments. */
  also?: readonly string[]
  /** SQL for the condition on the letter `l`. */
  guard: string
  /** SQL for the state before the change, if the guard says so. */
  oldState?: string | undefined
  /** SQL for the codes of the actions that are counted. */
  actions: string
  slot: string
  /** SQL for further columns, of the letter `l` and `x`, each after a comma. */
  returning?: string
  /** The columns that the statement returns. */
  select: string
}

/**
 * Lines that are shorter than this in total are fewer than `maxHistory`: a line has 12 bytes or
 * more.
 */
const fewBytes = 12 * maxHistory

/** SQL for the history with one more line, and for the number of omitted lines. */
export function appendLine(history: string, line: string): { history: string; omitted: string } {
  const lines = `string_to_array(${history}, E'\\n')`
  const isShort = `octet_length(${history}) < ${fewBytes}`
  const excess = `greatest(0, cardinality(${lines}) + 1 - ${maxHistory})`
  return {
    history: `CASE WHEN ${history} = '' THEN ${line} WHEN ${isShort} THEN ${history} || E'\\n' || ${line}
      ELSE array_to_string((${lines})[1:1] || (${lines})[2 + ${excess}:] || (${line})::text, E'\\n') END`,
    omitted: `CASE WHEN ${isShort} THEN 0 ELSE ${excess} END`,
  }
}

/** Columns that letters are counted by, besides their state. */
const countedColumns: readonly Column[] = ['category', 'priority', 'policy', 'fingerprint', 'tags']

/**
 * One statement that changes letters and counts them. Where the guard does not say what a letter
 * was counted by, the row before the change, `o`, is read from the snapshot of the statement. A
 * letter that changed since is then left out, which the comparison of the versions decides once the
 * row is locked.
 */
export function updateStatement(shape: UpdateShape): string {
  const { source, values, guard, oldState, returning = '' } = shape
  const isKnown = oldState !== undefined && !countedColumns.some((column) => values.has(column))
  const old = isKnown ? 'l' : 'o'
  const oldCode = isKnown ? codeOf('l', oldState) : codeOf('o')
  return `WITH u AS (
    UPDATE @letters l SET ${assignments(shape).join(', ')}
    FROM ${source} ${isKnown ? '' : 'JOIN @letters o ON o.id = x.id'}
    WHERE l.id = x.id AND ${seemsRare('x.id')} ${isKnown ? '' : 'AND l.version = o.version'} AND (${guard}) IS TRUE
    RETURNING l.id, l.queue, ${oldCode} AS old_code, ${codeOf('l')} AS new_code, ${old}.fingerprint AS old_group,
      l.fingerprint AS new_group, ${old}.tags AS old_tags, l.tags AS new_tags, l.priority, l.retries, l.backoff_ms
      ${returning}),
  ${values.has('fingerprint') ? updateGroups : ''}
  ${countMoves({ from: 'u', actions: shape.actions, slot: shape.slot })}
  SELECT ${shape.select} FROM u`
}

const updateGroups = `f AS (UPDATE @groups f SET fingerprint = u.new_group FROM u
    WHERE f.fingerprint = u.old_group AND f.id = u.id AND u.old_group <> u.new_group),`

function assignments({ values, due, also = [] }: UpdateShape): string[] {
  const value = (column: Column): string =>
    values.get(column) === 'null' ? 'NULL' : valueOf(column, `x.${column}`)
  const appended = appendLine('l.history', 'x.entry')
  const retryAt = values.has('retry_at') ? value('retry_at') : 'l.retry_at'
  const places: Record<NonNullable<RowChange['due']>, string[]> = {
    ready: ['wait = CASE WHEN l.lane IS NULL AND l.unmet = 0 THEN 0 ELSE 2 END'],
    none: [],
    resting: [
      `due_at = ${retryAt}`,
      `wait = CASE WHEN (${retryAt})::bigint IS NULL THEN NULL ELSE 3 END`,
    ],
  }
  return [
    ...[...values.keys()].map((column) => `${column} = ${value(column)}`),
    ...(due ? places[due] : []),
    ...also,
    'version = l.version + 1',
    `history = ${appended.history}`,
    `omitted = l.omitted + ${appended.omitted}`,
  ]
}
