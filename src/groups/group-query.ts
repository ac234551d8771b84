import { checkFilter } from '../check/filter.ts'
import { checkKeys, checkOneOf, describeValue, keysOf } from '../check/keys.ts'
import { readTime } from '../check/read-time.ts'
import { checkNote, checkText, maxName } from '../check/text.ts'
import { RedriveError } from '../errors.ts'
import {
  groupStatuses,
  type GroupQuery,
  type GroupStatus,
  type IgnoreGroupOptions,
  type ResolveGroupOptions,
} from '../letter/group.ts'
import type { LetterFilter } from '../letter/query.ts'
import type { GroupAction } from './life-cycle.ts'

const maxGroups = 100

export interface GroupSearch {
  filter: Pick<LetterFilter, 'queue' | 'state'>
  statuses: readonly GroupStatus[] | undefined
  within: readonly string[] | undefined
  sort: NonNullable<GroupQuery['sort']>
  /** Number of groups before the page. */
  from: number
  size: number
}

const queryKeys = keysOf<GroupQuery>({
  queue: true,
  within: true,
  state: true,
  status: true,
  sort: true,
  limit: true,
  cursor: true,
})

/** Checks a query. The cursor is the number of groups before the page. */
export function readGroupQuery(query: GroupQuery): GroupSearch {
  checkKeys('group query', query, queryKeys)
  const { limit = 20, cursor, sort = 'count', status, within: _, ...filter } = query
  checkFilter(filter)
  checkOneOf('sort', [sort], ['count', 'lastSeen', 'growth'])
  if (status !== undefined) checkOneOf('status', status, groupStatuses)
  if (!Number.isInteger(limit) || limit < 0)
    throw invalid(`limit must be a non-negative integer, got ${limit}`)
  if (cursor !== undefined && !/^\d{1,9}$/.test(cursor))
    throw invalid(
      `cursor must come from an earlier page of groups, got ${String(cursor).slice(0, 80)}`,
    )
  const statuses = status === undefined ? undefined : Array.isArray(status) ? status : [status]
  const size = Math.min(limit, maxGroups)
  const within = readWithin(query)
  return { filter, statuses, within, sort, from: Number(cursor ?? 0), size }
}

export function readWithin({ within }: Pick<GroupQuery, 'within'>): readonly string[] | undefined {
  const isNames = Array.isArray(within) && within.every((name) => typeof name === 'string')
  if (within === undefined || isNames) return within
  throw invalid(`within must be an array of queue names, got ${describeValue(within)}`)
}

type ActionOf<Kind extends GroupAction['kind']> = Extract<GroupAction, { kind: Kind }>

export function readResolve(options: ResolveGroupOptions): ActionOf<'resolve'> {
  checkKeys('resolve options', options, ['inVersion'])
  const { inVersion } = options
  if (inVersion === undefined) return { kind: 'resolve' }
  return { kind: 'resolve', inVersion: checkText('inVersion', inVersion, maxName) }
}

export function readIgnore(options: IgnoreGroupOptions): ActionOf<'ignore'> {
  checkKeys('ignore options', options, ['until', 'count', 'rate'])
  const { until, count, rate } = options
  for (const [name, value] of Object.entries({ count, rate }))
    if (value !== undefined && (!Number.isSafeInteger(value) || value < 1))
      throw invalid(`\`${name}\` must be a positive integer, got ${describeValue(value)}`)
  return {
    kind: 'ignore',
    ...(until === undefined ? {} : { until: readTime('until', until) }),
    ...(count === undefined ? {} : { count }),
    ...(rate === undefined ? {} : { rate }),
  }
}

export function readAssign(assignee: unknown): ActionOf<'assign'> {
  if (assignee === null) return { kind: 'assign', assignee }
  return { kind: 'assign', assignee: checkText('assignee', assignee, maxName) }
}

export function readNote(text: unknown): ActionOf<'note'> {
  return { kind: 'note', text: checkNote(text) }
}

export function checkFingerprint(fingerprint: unknown): string {
  return checkText('fingerprint', fingerprint, Number.POSITIVE_INFINITY)
}

export function checkFingerprints(thing: string, list: unknown): string[] {
  if (!Array.isArray(list) || list.length === 0)
    throw invalid(`\`${thing}\` must be a non-empty array of fingerprints`)
  return [...new Set(list.map(checkFingerprint))]
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
