import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { TallyKey } from '../../store.ts'
import {
  archived,
  categories,
  categoryCode,
  policies,
  policyCode,
  priorities,
  priorityCode,
  stateCode,
  states,
  type Cell,
} from './codes.ts'

/** The fields that the counts distinguish. */
const cellFields = new Set<string>(['queue', 'state', 'category', 'priority', 'policy'])

/** Whether the counts suffice for the filter. */
export function isCountable(filter: LetterFilter): boolean {
  return Object.entries(filter).every(
    ([field, wanted]) => wanted === undefined || cellFields.has(field),
  )
}

export function listed<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? (value as readonly T[]) : [value as T]
}

/** The codes that a filter allows for a cell, except its queue. Undefined: any. */
export interface CellCodes {
  states: number[] | undefined
  categories: number[] | undefined
  priorities: number[] | undefined
  policies: number[] | undefined
}

export function cellCodes(filter: LetterFilter): CellCodes {
  return {
    states: wantedStates(filter),
    categories: codes(filter.category, categoryCode),
    priorities: codes(filter.priority, priorityCode),
    policies: codes(filter.policy, policyCode),
  }
}

/** Archived letters match only if requested by state or id. */
function wantedStates({ state, ids }: LetterFilter): number[] | undefined {
  if (state !== undefined || ids !== undefined) return codes(state, stateCode)
  return [...states.keys()].filter((code) => code !== archived)
}

function codes<T>(
  wanted: T | readonly T[] | undefined,
  code: (value: T) => number,
): number[] | undefined {
  return wanted === undefined ? undefined : [...new Set(listed(wanted).map(code))]
}

/** Whether a cell can have matching letters, except for its queue. */
export function passes(wanted: CellCodes, cell: Omit<Cell, 'queue'>): boolean {
  return (
    among(wanted.states, cell.state) &&
    among(wanted.categories, cell.category) &&
    among(wanted.priorities, cell.priority) &&
    among(wanted.policies, cell.policy)
  )
}

export function among<T>(wanted: readonly T[] | undefined, value: T): boolean {
  return wanted === undefined || wanted.includes(value)
}

/** Keys without maintained counts. */
export type UncountedKey = 'severity' | 'source'

export type CodedKey = Exclude<TallyKey, 'queue' | GroupKey | 'tag' | UncountedKey>

/** Keys whose values have the name of a group. */
export type GroupKey = 'group' | 'groupState'

export function isGroupKey(by: TallyKey): by is GroupKey {
  return by === 'group' || by === 'groupState'
}

export function isUncounted(by: TallyKey): by is UncountedKey {
  return by === 'severity' || by === 'source'
}

/** Whether the counts suffice for a tally. Letters of a group are counted, but not by tag. */
export function hasCounts(
  by: TallyKey,
  { group, ...filter }: LetterFilter,
): by is Exclude<TallyKey, UncountedKey> {
  return !isUncounted(by) && isCountable(filter) && (group === undefined || by !== 'tag')
}

/** SQL for the codes of counters that pass. */
export function codeCondition(wanted: CellCodes): string {
  const among = (part: string, codes: number[] | undefined): string[] => {
    if (codes === undefined) return []
    return [codes.length === 0 ? 'false' : `${part} IN (${codes.join(', ')})`]
  }
  const parts = [
    ...among('(code >> 9)', wanted.states),
    ...among('((code >> 5) & 15)', wanted.categories),
    ...among('((code >> 3) & 3)', wanted.priorities),
    ...among('(code & 7)', wanted.policies),
  ]
  return parts.length > 0 ? parts.join(' AND ') : 'true'
}

const words: Record<CodedKey, readonly string[]> = {
  state: states,
  category: categories,
  priority: priorities,
  policy: policies,
}

/** The value that the letters of a cell are counted by. */
export function wordOf(by: CodedKey, code: number): string {
  return words[by][code] ?? 'unknown'
}

/** SQL for the name of a state, from SQL for its code. */
function stateWord(code: string): string {
  const cases = states.map((state, at) => `WHEN ${at} THEN '${state}'`).join(' ')
  return `CASE ${code} ${cases} ELSE 'unknown' END`
}

/** SQL for the values of group keys, from SQL for the code of a state and the name of a group. */
export function groupValueSql(by: GroupKey, state: string, group: string): string {
  return by === 'group' ? group : `${stateWord(state)} || ' ' || ${group}`
}

/** The value that the letters of a group in a state, given by its code, are counted by. */
export function groupValueOf(by: GroupKey, group: string, state: number): string {
  return by === 'group' ? group : `${wordOf('state', state)} ${group}`
}

/** The values that a letter is counted by. */
export function valuesOf(letter: DeadLetter | LetterSummary, by: TallyKey): string[] {
  if (by === 'group') return [letter.fingerprint]
  if (by === 'groupState') return [`${letter.state} ${letter.fingerprint}`]
  if (by === 'tag') return [...new Set(letter.tags)]
  if (by === 'policy' || by === 'source') return [letter[by].kind]
  return [letter[by]]
}

export function grow(tally: Map<string, number>, value: string, n: number): void {
  tally.set(value, (tally.get(value) ?? 0) + n)
}
