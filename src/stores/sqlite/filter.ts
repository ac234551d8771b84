import { matches, type LetterFilter } from '../../letter/query.ts'
import type { StoreContext } from './context.ts'
import type { Cell } from '../rows/codes.ts'
import { among, cellCodes, listed, passes } from '../rows/tally.ts'
import type { Origin } from '../rows/pack.ts'
import { restOf } from '../rows/rest.ts'
import { metadataTexts, sourceKey } from '../rows/source-key.ts'
import { unpackSummary } from '../rows/unpack.ts'
import { entryBySeq, findLetter } from './reading.ts'
import type { SqlValue } from '../rows/row.ts'

/** An SQL condition with its parameters. */
export interface Condition {
  sql: string
  params: SqlValue[]
}

/**
 * Tests whether a cell of the counts can contain matching letters.
 */
export function cellTest(context: StoreContext, filter: LetterFilter): (cell: Cell) => boolean {
  const queues = queuesOf(context, filter)
  const wanted = cellCodes(filter)
  return (cell) => among(queues, cell.queue) && passes(wanted, cell)
}

function queuesOf(context: StoreContext, { queue }: LetterFilter): number[] | undefined {
  return queue === undefined
    ? undefined
    : listed(queue).map((name) => context.queues.find(name) ?? -1)
}

/**
 * The filter as SQL. Must agree with `matches` in `letter/query.ts`. If `needsReading` is true, the
 * SQL only narrows the search, and `agrees` decides. Fields in `covered` are left out: the index
 * range already implies them.
 */
export function conditionOf(
  context: StoreContext,
  filter: LetterFilter,
  covered: readonly (keyof LetterFilter)[] = [],
): Condition {
  const parts: string[] = []
  const params: SqlValue[] = []
  const say = (sql: string, ...values: SqlValue[]): void => {
    parts.push(sql)
    params.push(...values)
  }
  const oneOf = (column: string, wanted: number[] | undefined): void => {
    if (wanted) say(`${column} IN (${wanted.join(', ')})`)
  }
  const named = (field: keyof LetterFilter, column: string): void => {
    const wanted = filter[field] as string | string[] | undefined
    if (wanted === undefined || covered.includes(field)) return
    const values = listed(wanted)
    say(`${column} IN (${values.map(() => '?').join(', ')})`, ...values)
  }
  const codes = cellCodes(filter)
  if (!covered.includes('queue')) oneOf('queue', queuesOf(context, filter))
  if (!covered.includes('state')) oneOf('state', codes.states)
  oneOf('category', codes.categories)
  oneOf('priority', codes.priorities)
  oneOf('policy', codes.policies)
  named('reason', 'reason')
  named('group', 'fingerprint')
  named('lane', 'lane')
  named('tenant', 'tenant')
  if (filter.sourceId !== undefined && !covered.includes('sourceId'))
    say('source_id = ?', sourceKey(filter.sourceId))
  for (const text of metadataTexts(filter)) say('instr(rest, ?) > 0', text)
  if (filter.tag !== undefined && !covered.includes('tag'))
    say('EXISTS (SELECT 1 FROM tags WHERE tags.tag = ? AND tags.id = letters.id)', filter.tag)
  if (filter.since !== undefined) say('dead_lettered_at >= ?', filter.since)
  if (filter.until !== undefined) say('dead_lettered_at < ?', filter.until)
  if (filter.settledBefore !== undefined) say('settled_at < ?', filter.settledBefore)
  if (filter.expiresBefore !== undefined) say('expires_at < ?', filter.expiresBefore)
  if (filter.dependent !== undefined)
    say(`${filter.dependent ? '' : 'NOT '}EXISTS (SELECT 1 FROM deps WHERE deps.seq = letters.seq)`)
  return { sql: parts.length > 0 ? parts.join(' AND ') : '1', params }
}

/** Whether a letter matches in fields that have no column. */
export function agrees(context: StoreContext, seq: number, filter: LetterFilter): boolean {
  const { text, metadata, sourceId } = filter
  if (text !== undefined && !mentions(context, seq, text)) return false
  if (metadata === undefined && sourceId === undefined) return true
  const found = findLetter(context, 'seq', seq, 'summary')
  if (!found) return false
  const letter = unpackSummary(found.letter)
  return matches(letter, {
    ids: [letter.id],
    ...(metadata === undefined ? {} : { metadata }),
    ...(sourceId === undefined ? {} : { sourceId }),
  })
}

/**
 * Whether the queue or the last failure contains the string, ignoring case. SQLite ignores case
 * only in ASCII.
 */
function mentions(context: StoreContext, seq: number, text: string): boolean {
  const entry = entryBySeq(context, seq)
  if (!entry) return false
  const needle = text.toLowerCase()
  if (context.queues.name(entry.queue).toLowerCase().includes(needle)) return true
  const failure = restOf(entry.row)?.failure ?? firstFailure(context, seq)
  return [failure?.name, failure?.message, failure?.code].some((field) =>
    field?.toLowerCase().includes(needle),
  )
}

function firstFailure({ db }: StoreContext, seq: number): Origin['firstFailure'] | undefined {
  const body = db.get('SELECT origin FROM bodies WHERE seq = ?', seq)
  try {
    return body && (JSON.parse(body[0] as string) as Origin).firstFailure
  } catch {
    return undefined
  }
}
