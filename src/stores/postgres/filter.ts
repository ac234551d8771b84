import type { LetterFilter } from '../../letter/query.ts'
import { reasonCode, type Cell } from '../rows/codes.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import { encodeTime } from '../rows/times.ts'
import { among, cellCodes, listed, passes, type CellCodes } from '../rows/tally.ts'
import { metadataTexts, sourceKey } from '../rows/source-key.ts'
import type { StoreContext } from './context.ts'
import { toText } from './text.ts'

/** The filter on cells, in codes. Undefined: the field may have any value. */
export interface Codes extends CellCodes {
  queues: number[] | undefined
}

export async function codesOf(context: StoreContext, filter: LetterFilter): Promise<Codes> {
  const names = filter.queue === undefined ? undefined : listed(filter.queue)
  const queues = names && [...(await context.queues.find(names)).values()]
  return { queues, ...cellCodes(filter) }
}

/** Tests a cell of the counts. A cell that does not pass has no matching letter. */
export function cellTest(codes: Codes): (cell: Cell) => boolean {
  return (cell) => among(codes.queues, cell.queue) && passes(codes, cell)
}

/**
 * SQL for a filter on a row of `l`; its values are appended. It must agree with `matches` in
 * `letter/query.ts`. Where `needsReading` is true, it only narrows the search.
 */
export function conditionOf(filter: LetterFilter, codes: Codes, values: unknown[]): string {
  const parts: string[] = []
  const put = (value: unknown): string => `$${values.push(value)}`
  const oneOf = (column: string, wanted: number[] | undefined): void => {
    if (wanted) parts.push(`l.${column} = ANY(${put(wanted)}::int[])`)
  }
  const named = (column: string, wanted: string | undefined): void => {
    if (wanted !== undefined) parts.push(`l.${column} = ${put(toText(wanted))}::text`)
  }
  const before = (column: string, limit: string | undefined, sign = '<'): void => {
    if (limit !== undefined) parts.push(`l.${column} ${sign} ${put(encodeTime(limit))}::bigint`)
  }
  oneOf('queue', codes.queues)
  oneOf('state', codes.states)
  oneOf('category', codes.categories)
  oneOf('priority', codes.priorities)
  oneOf('policy', codes.policies)
  if (filter.ids) parts.push(`l.id = ANY(${put(filter.ids.filter(isLetterId))}::uuid[])`)
  if (filter.reason !== undefined) oneOf('reason', [reasonCode(filter.reason)])
  if (filter.group !== undefined)
    parts.push(`l.fingerprint = ANY(${put(listed(filter.group).map(toText))}::text[])`)
  named('lane', filter.lane)
  named('tenant', filter.tenant)
  named('source_id', filter.sourceId === undefined ? undefined : sourceKey(filter.sourceId))
  for (const text of metadataTexts(filter)) parts.push(`strpos(l.metadata, ${put(text)}::text) > 0`)
  if (filter.tag !== undefined) parts.push(`${put(toText(filter.tag))}::text = ANY(l.tags)`)
  before('captured_at', filter.since, '>=')
  before('captured_at', filter.until)
  before('settled_at', filter.settledBefore)
  before('expires_at', filter.expiresBefore)
  if (filter.dependent !== undefined) parts.push(`l.unmet ${filter.dependent ? '>' : '='} 0`)
  return parts.length > 0 ? parts.map((part) => `coalesce(${part}, false)`).join(' AND ') : 'true'
}

/**
 * The longest ASCII part of the text, as it appears in JSON: every letter that mentions the text
 * contains it. Case folding of other characters depends on the server. Undefined: there is no ASCII
 * part, and every letter must be read.
 */
function longestAscii(text: string): string | undefined {
  const stretches = text.toLowerCase().match(/[\u0020-\u007e]+/g) ?? []
  const [longest] = stretches.toSorted((a, b) => b.length - a.length)
  return longest === undefined ? undefined : JSON.stringify(longest).slice(1, -1)
}

/**
 * SQL that preselects letters `l` with bodies `b` that mention the text: it passes all of them, and
 * a few others.
 */
export async function preselectText(
  context: StoreContext,
  text: string,
  values: unknown[],
): Promise<string> {
  const stretch = longestAscii(text)
  if (stretch === undefined) return 'true'
  const needle = text.toLowerCase()
  const named = [...(await context.queues.all())].filter(([name]) =>
    name.toLowerCase().includes(needle),
  )
  const put = (value: unknown): string => `$${values.push(value)}`
  const queue = `l.queue = ANY(${put(named.map(([, queue]) => queue))}::int[])`
  const at = put(stretch)
  const has = (column: string): string => `strpos(lower(${column} COLLATE "C"), ${at}::text) > 0`
  // The Kelvin sign and the dotted capital I are the only characters that fold to ASCII.
  const folding = put('[\u212a\u0130]')
  const odd = (column: string): string => `${column} ~ ${folding}::text`
  return `coalesce(${queue} OR ${['l.failure', 'b.origin'].flatMap((column) => [has(column), odd(column)]).join(' OR ')}, false)`
}
