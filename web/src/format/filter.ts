import type { FilterInput } from 'redrive/api'
import { formatAmount } from './number.ts'
import { shortenId, toWords } from './text.ts'

export type FilterKey = keyof FilterInput

/** What a filter can ask, in the order in which people think of it. */
export const filterLabels: Record<FilterKey, string> = {
  queue: 'queue',
  state: 'state',
  group: 'group',
  category: 'category',
  priority: 'priority',
  reason: 'reason',
  tag: 'tag',
  tenant: 'tenant',
  metadata: 'metadata',
  since: 'since',
  until: 'until',
  text: 'text',
  lane: 'lane',
  sourceId: 'source id',
  policy: 'backoff',
  settledBefore: 'settled before',
  expiresBefore: 'expires before',
  dependent: 'waits for dependencies',
  ids: 'selected',
}

export const filterKeys = Object.keys(filterLabels) as FilterKey[]

/** One condition of a filter: a value of a list, a metadata key, or a whole field. */
export interface FilterPart {
  key: FilterKey
  /** The value of the list, or the key of the metadata. */
  value?: string
  label: string
  text: string
}

/** The conditions of a filter as words. Times are left as they are: the reader chooses the zone. */
export function filterParts(filter: FilterInput): FilterPart[] {
  return filterKeys.flatMap((key) => partsOf(key, filter[key]))
}

function partsOf(key: FilterKey, value: FilterInput[FilterKey]): FilterPart[] {
  const label = filterLabels[key]
  if (value === undefined) return []
  if (key === 'ids')
    return [{ key, label, text: formatAmount((value as string[]).length, 'letter') }]
  if (Array.isArray(value))
    return value.map((one) => ({ key, value: one, label, text: valueText(key, one) }))
  if (typeof value === 'object')
    return Object.entries(value).map(([name, one]) => ({
      key,
      value: name,
      label: `metadata ${name}`,
      text: String(one),
    }))
  return [{ key, label, text: valueText(key, String(value)) }]
}

function valueText(key: FilterKey, value: string): string {
  if (key === 'group') return shortenId(value)
  if (key === 'dependent') return value === 'true' ? 'yes' : 'no'
  return key === 'category' || key === 'reason' ? toWords(value) : value
}

/** The filter without one of its conditions. */
export function withoutPart<F extends FilterInput>(filter: F, { key, value }: FilterPart): F {
  const { [key]: given, ...rest } = filter
  if (value === undefined || given === undefined) return rest as unknown as F
  if (Array.isArray(given)) {
    const left = (given as string[]).filter((one) => one !== value)
    return (left.length === 0 ? rest : { ...rest, [key]: left }) as F
  }
  if (typeof given !== 'object') return rest as unknown as F
  const left = Object.fromEntries(Object.entries(given).filter(([name]) => name !== value))
  return (Object.keys(left).length === 0 ? rest : { ...rest, [key]: left }) as F
}

/** Whether a new letter belongs to a list with this filter. */
export function matchesFilter(letter: MatchedLetter, filter: FilterInput): boolean {
  const has = (key: 'queue' | 'state' | 'category' | 'priority', value: string): boolean =>
    filter[key] === undefined || [filter[key]].flat().includes(value)
  const is = (given: string | undefined, value: string | undefined): boolean =>
    given === undefined || given === value
  const { failure } = letter
  return (
    has('queue', letter.queue) &&
    has('state', letter.state) &&
    has('category', letter.category) &&
    has('priority', letter.priority) &&
    is(filter.reason, letter.reason) &&
    (filter.group === undefined || [filter.group].flat().includes(letter.fingerprint)) &&
    (filter.tag === undefined || letter.tags.includes(filter.tag)) &&
    is(filter.tenant, letter.tenant) &&
    is(filter.lane, letter.lane) &&
    is(filter.policy, letter.policy.kind) &&
    (filter.since === undefined || letter.deadLetteredAt >= filter.since) &&
    (filter.until === undefined || letter.deadLetteredAt < filter.until) &&
    Object.entries(filter.metadata ?? {}).every(([key, value]) => letter.metadata[key] === value) &&
    hasText([letter.queue, failure.name, failure.message, failure.code ?? ''], filter.text) &&
    filter.ids === undefined &&
    filter.sourceId === undefined &&
    filter.settledBefore === undefined &&
    filter.expiresBefore === undefined &&
    filter.dependent === undefined
  )
}

interface MatchedLetter {
  queue: string
  state: string
  category: string
  priority: string
  reason?: string
  fingerprint: string
  tags: readonly string[]
  tenant?: string
  lane?: string
  policy: { kind: string }
  deadLetteredAt: string
  metadata: Readonly<Record<string, unknown>>
  failure: { name: string; message: string; code?: string }
}

function hasText(values: readonly string[], text: string | undefined): boolean {
  return text === undefined || values.some((one) => one.toLowerCase().includes(text.toLowerCase()))
}
