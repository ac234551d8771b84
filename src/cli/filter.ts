import type { Command } from 'commander'
import { stateNames } from '../check/filter.ts'
import { RedriveError } from '../errors.ts'
import { categories, priorities, states } from '../letter/letter.ts'
import { maxLimit, type JsonScalar, type LetterFilter } from '../letter/query.ts'
import { toTimestamp } from '../letter/time.ts'
import { nearest } from '../check/nearest.ts'

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

const collect = (value: string, before: string[] = []): string[] => [...before, value]

/** Adds the options that say which letters. */
export function addFilterOptions(command: Command): Command {
  return command
    .option('-q, --queue <name>', 'of this queue; may be given several times', collect)
    .option('-s, --state <state>', `in this state: ${states.join(', ')}`, collect)
    .option('-c, --category <category>', 'whose failure is of this category', collect)
    .option('-p, --priority <priority>', `of this priority: ${priorities.join(', ')}`, collect)
    .option('-g, --group <fingerprint>', 'of this cause')
    .option('--tag <tag>', 'with this tag')
    .option('--source-id <id>', 'of this workflow, message, pipeline stream or task')
    .option(
      '--metadata <key=value>',
      'with this metadata; a value that is a JSON number, boolean, null or string counts as one',
      collect,
    )
    .option('--text <text>', 'with this text in the queue or the failure')
    .option('--since <when>', 'dead-lettered since: 30s, 15m, 2h, 3d, or an ISO moment')
    .option('--until <when>', 'dead-lettered before: the same')
}

export function readFilter(options: FilterOptions, nowMs: number): LetterFilter {
  const { queue, group, tag, sourceId, text, since, until } = options
  // Everything has it: what was meant is rather a variable that is not set.
  if (text === '') throw new RedriveError('INVALID_INPUT', '--text is empty: say what to look for')
  const state = oneOf('state', states, options.state, stateNames)
  const category = oneOf('category', categories, options.category)
  const priority = oneOf('priority', priorities, options.priority)
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
    ...(since === undefined ? {} : { since: moment('--since', since, nowMs) }),
    ...(until === undefined ? {} : { until: moment('--until', until, nowMs) }),
  }
}

/** Values may be given several times, or in one with commas. */
function oneOf<T extends string>(
  name: string,
  known: readonly T[],
  given: string[] | undefined,
  renamed: Readonly<Record<string, string>> = {},
): T[] | undefined {
  return given
    ?.flatMap((list) => list.split(','))
    .map((value) => {
      const found = known.find((one) => one === value.trim().toLowerCase())
      if (found) return found
      const near = Object.hasOwn(renamed, value) ? renamed[value] : nearest(value, known)
      const hint = near ? `did you mean ${near}?` : `known: ${known.join(', ')}`
      throw new RedriveError('INVALID_INPUT', `unknown ${name} "${value}": ${hint}`)
    })
}

/** `customer=x` asks for a string; a value that is JSON for a scalar asks for that. */
function readMetadata(given: readonly string[]): NonNullable<LetterFilter['metadata']> {
  return Object.fromEntries(
    given.map((pair) => {
      const [, key = '', text = ''] = /^([^=]+)=(.*)$/s.exec(pair) ?? []
      if (key === '')
        throw new RedriveError(
          'INVALID_INPUT',
          `--metadata is a key and a value like customer=x, got "${pair}"`,
        )
      return [key, scalarIn(text)]
    }),
  )
}

function scalarIn(text: string): JsonScalar {
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

/** When something is to happen: after a span from now, or at a timestamp. */
export function readAt(option: string, text: string, nowMs: number): string {
  return moment(option, text, nowMs, 1)
}

/** A span counts back from now, or ahead. */
function moment(option: string, text: string, nowMs: number, direction: -1 | 1 = -1): string {
  const [, count, unit] = /^(\d{1,9}) ?(s|m|min|h|d|w)$/i.exec(text.trim()) ?? []
  if (count !== undefined)
    return toTimestamp(nowMs + direction * Number(count) * unitMs[unit!.toLowerCase()]!)
  const ms = /^\d{4}-\d\d/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(ms))
    throw new RedriveError(
      'INVALID_INPUT',
      `${option} is a span like 15m, 2h or 3d, or an ISO moment, got "${text}"`,
    )
  return toTimestamp(ms)
}

export function readLimit(text: string): number {
  const limit = /^\d+$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= maxLimit) return limit
  throw new RedriveError(
    'INVALID_INPUT',
    `--limit is a number from 1 to ${maxLimit}, got "${text}"`,
  )
}
