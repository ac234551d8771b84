import type { LetterFilter } from '../../letter/query.ts'
import type { Books } from './books.ts'
import {
  archived,
  categoryCode,
  policyCode,
  priorityCode,
  stateCode,
  states,
  type Cell,
} from '../../kept/codes.ts'
import type { Origin } from '../../kept/pack.ts'
import { restOf } from '../../kept/rest.ts'
import { entryBySeq } from './reading.ts'
import type { SqlValue } from '../../kept/row.ts'

/** A condition of SQL with its values. */
export interface Condition {
  sql: string
  params: SqlValue[]
}

function listed<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? (value as readonly T[]) : [value as T]
}

/** The fields that the counts tell apart. */
const cellFields = new Set<string>(['queue', 'state', 'category', 'priority', 'policy'])

/** Whether the counts alone can answer: no other field is named. */
export function isCountable(filter: LetterFilter): boolean {
  return Object.entries(filter).every(
    ([field, wanted]) => wanted === undefined || cellFields.has(field),
  )
}

/** What a filter means for a cell of the counts. A cell that does not pass has no letter that matches. */
export function cellTest(books: Books, filter: LetterFilter): (cell: Cell) => boolean {
  const queues = codes(filter.queue, (name: string) => books.queues.find(name) ?? -1)
  const wanted = codes(wantedStates(filter), stateCode)
  const categories = codes(filter.category, categoryCode)
  const priorities = codes(filter.priority, priorityCode)
  const policies = codes(filter.policy, policyCode)
  return (cell) =>
    (!queues || queues.has(cell.queue)) &&
    (!wanted || wanted.has(cell.state)) &&
    (!categories || categories.has(cell.category)) &&
    (!priorities || priorities.has(cell.priority)) &&
    (!policies || policies.has(cell.policy))
}

/** Archived letters are out of sight unless they are asked for, by state or by id. */
function wantedStates({ state, ids }: LetterFilter): LetterFilter['state'] {
  if (state !== undefined || ids !== undefined) return state
  return states.filter((_, code) => code !== archived)
}

function codes<T>(
  wanted: T | readonly T[] | undefined,
  code: (value: T) => number,
): Set<number> | undefined {
  return wanted === undefined ? undefined : new Set(listed(wanted).map(code))
}

/**
 * What a filter means for a row, in SQL, `text` aside: it must agree with `matches` in `letter/query.ts`. `covered` fields
 * are left out, since the index range that is read has only letters that match them.
 */
export function conditionOf(
  books: Books,
  filter: LetterFilter,
  covered: readonly (keyof LetterFilter)[] = [],
): Condition {
  const parts: string[] = []
  const params: SqlValue[] = []
  const say = (sql: string, ...values: SqlValue[]): void => {
    parts.push(sql)
    params.push(...values)
  }
  const oneOf = (column: string, wanted: Set<number> | undefined): void => {
    if (wanted) say(`${column} IN (${[...wanted].join(', ')})`)
  }
  const named = (field: keyof LetterFilter, column: string): void => {
    const wanted = filter[field] as string | string[] | undefined
    if (wanted === undefined || covered.includes(field)) return
    const values = listed(wanted)
    say(`${column} IN (${values.map(() => '?').join(', ')})`, ...values)
  }
  if (!covered.includes('queue'))
    oneOf(
      'queue',
      codes(filter.queue, (name) => books.queues.find(name) ?? -1),
    )
  if (!covered.includes('state')) oneOf('state', codes(wantedStates(filter), stateCode))
  oneOf('category', codes(filter.category, categoryCode))
  oneOf('priority', codes(filter.priority, priorityCode))
  oneOf('policy', codes(filter.policy, policyCode))
  named('reason', 'reason')
  named('group', 'fingerprint')
  named('lane', 'lane')
  named('tenant', 'tenant')
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

/** Whether the queue or the last failure of a letter mentions the text. SQLite folds only ASCII, so this is not SQL. */
export function mentions(books: Books, seq: number, text: string): boolean {
  const entry = entryBySeq(books, seq)
  if (!entry) return false
  const needle = text.toLowerCase()
  if (books.queues.name(entry.queue).toLowerCase().includes(needle)) return true
  const failure = restOf(entry.row)?.failure ?? firstFailure(books, seq)
  return [failure?.name, failure?.message, failure?.code].some((field) =>
    field?.toLowerCase().includes(needle),
  )
}

function firstFailure({ db }: Books, seq: number): Origin['firstFailure'] | undefined {
  const body = db.get('SELECT origin FROM bodies WHERE seq = ?', seq)
  try {
    return body && (JSON.parse(body[0] as string) as Origin).firstFailure
  } catch {
    return undefined
  }
}
