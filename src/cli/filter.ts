import type { Command } from 'commander'
import { stateNames } from '../check/filter.ts'
import { RedriveError } from '../errors.ts'
import { categories, priorities, states } from '../letter/letter.ts'
import { maxLimit, type JsonScalar, type LetterFilter } from '../letter/query.ts'
import { toTimestamp } from '../letter/time.ts'
import { nearest } from '../check/nearest.ts'
import { parseTime } from '../check/read-time.ts'

export interface FilterOptions {
  queue?: string[]
  state?: string[]
  category?: string[]
  priority?: string[]
  group?: string
  tag?: string
  sourceId?: string
  metadata?: string[]
  text?: string
  since?: string
  until?: string
}

/** Collects the values of an option that may be repeated. */
export const collect = (value: string, before: string[] = []): string[] => [...before, value]

/** Adds the filter options. */
export function addFilterOptions(command: Command): Command {
  return command
    .option('-q, --queue <name>', 'letters of this queue; may be repeated', collect)
    .option('-s, --state <state>', `letters in this state: ${states.join(', ')}`, collect)
    .option('-c, --category <category>', 'letters whose failure has this category', collect)
    .option(
      '-p, --priority <priority>',
      `letters with this priority: ${priorities.join(', ')}`,
      collect,
    )
    .option('-g, --group <fingerprint>', 'letters with this cause')
    .option('--tag <tag>', 'letters with this tag')
    .option('--source-id <id>', 'letters of this workflow, message, pipeline stream or task')
    .option(
      '--metadata <key=value>',
      'letters with this metadata; JSON numbers, booleans, null and strings are parsed',
      collect,
    )
    .option('--text <text>', 'letters with this string in the queue or the failure')
    .option('--since <when>', 'dead-lettered since: 30s, 15m, 2h, 3d ago, or an ISO timestamp')
    .option('--until <when>', 'dead-lettered before: as --since')
}

export function readFilter(options: FilterOptions, nowMs: number): LetterFilter {
  const { queue, group, tag, sourceId, text, since, until } = options
  // An empty string matches every letter; it is almost certainly an unset variable.
  if (text === '')
    throw new RedriveError('INVALID_INPUT', '--text is empty: give a string to search for')
  const state = parseChoices('state', states, options.state, stateNames)
  const category = parseChoices('category', categories, options.category)
  const priority = parseChoices('priority', priorities, options.priority)
  return {
    ...(queue ? { queue } : {}),
    ...(state ? { state } : {}),
    ...(category ? { category } : {}),
    ...(priority ? { priority } : {}),
    ...(group === undefined ? {} : { group }),
    ...(tag === undefined ? {} : { tag }),
    ...(sourceId === undefined ? {} : { sourceId }),
    ...(options.metadata ? { metadata: readMetadata(options.metadata) } : {}),
    ...(text === undefined ? {} : { text }),
    ...(since === undefined ? {} : { since: parseTimestamp('--since', since, nowMs) }),
    ...(until === undefined ? {} : { until: parseTimestamp('--until', until, nowMs) }),
  }
}

/** Values may be repeated, or separated by commas. */
function parseChoices<T extends string>(
  name: string,
  known: readonly T[],
  given: string[] | undefined,
  renamed: Readonly<Record<string, string>> = {},
): T[] | undefined {
  return given
    ?.flatMap((list) => list.split(','))
    .map((value) => {
      const match = known.find((one) => one === value.trim().toLowerCase())
      if (match) return match
      const near = Object.hasOwn(renamed, value) ? renamed[value] : nearest(value, known)
      const hint = near ? `did you mean ${near}?` : `known: ${known.join(', ')}`
      throw new RedriveError('INVALID_INPUT', `unknown ${name} "${value}": ${hint}`)
    })
}

/** `customer=x` is a string; a value that is JSON of a scalar is parsed. */
function readMetadata(given: readonly string[]): NonNullable<LetterFilter['metadata']> {
  return Object.fromEntries(
    given.map((pair) => {
      const [, key = '', text = ''] = /^([^=]+)=(.*)$/s.exec(pair) ?? []
      if (key === '')
        throw new RedriveError(
          'INVALID_INPUT',
          `--metadata must be a key and a value such as customer=x, got "${pair}"`,
        )
      return [key, parseScalar(text)]
    }),
  )
}

function parseScalar(text: string): JsonScalar {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? text : (value as JsonScalar)
  } catch {
    return text
  }
}

const unitMs: Record<string, number> = {
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** A future timestamp: a duration from now, or an ISO timestamp. */
export function readFutureTime(option: string, text: string, nowMs: number): string {
  return parseTimestamp(option, text, nowMs, 1)
}

/** Parses a duration relative to now, in the given direction, or an ISO timestamp. */
function parseTimestamp(
  option: string,
  text: string,
  nowMs: number,
  direction: -1 | 1 = -1,
): string {
  const [, count, unit] = /^(\d{1,9}) ?(s|m|min|h|d|w)$/i.exec(text.trim()) ?? []
  if (count !== undefined)
    return toTimestamp(nowMs + direction * Number(count) * unitMs[unit!.toLowerCase()]!)
  const ms = parseTime(text.trim())
  if (Number.isNaN(ms))
    throw new RedriveError(
      'INVALID_INPUT',
      `${option} must be a duration such as 15m, 2h or 3d, or an ISO-8601 time such as 2026-01-31T09:30:00Z, got "${text}"`,
    )
  return toTimestamp(ms)
}

export function readLimit(text: string): number {
  const limit = /^\d+$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= maxLimit) return limit
  throw new RedriveError(
    'INVALID_INPUT',
    `--limit must be an integer from 1 to ${maxLimit}, got "${text}"`,
  )
}
