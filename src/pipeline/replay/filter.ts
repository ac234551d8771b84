import { RedriveError } from '../../errors.ts'
import { toMs } from '../../letter/time.ts'
import { nearest } from '../../check/nearest.ts'
import type { NodeSettings } from '../graph/settings.ts'
import type { EnvelopePeek } from './peek.ts'
import { readStream } from '../stream.ts'

/**
 * Selects dead records. All given criteria must match; several values of one criterion are
 * alternatives.
 */
export interface ReplayFilter {
  /** One of these. */
  errorTypes?: readonly string[]
  /** A part of the error message, case-insensitive. */
  message?: string
  /** Failed at this time or later. */
  sinceMs?: number
  /** Failed before this time. */
  untilMs?: number
  streamId?: string
  /** The key of the original record. */
  key?: string
}

const names = ['error_type', 'message', 'since', 'until', 'stream_id', 'key'] as const
const maxLength = 1000

/**
 * Parses strings such as `error_type=TIMEOUT,CRASH_LOOP`, `message=connect`,
 * `since=2026-01-31T10:00:00Z`. Throws INVALID_INPUT.
 */
export function replayFilter(strings: readonly string[]): ReplayFilter {
  const filter: ReplayFilter = {}
  const seen = new Set<string>()
  for (const text of strings) {
    const at = text.indexOf('=')
    const [name, value] = [text.slice(0, at).trim(), text.slice(at + 1).trim()]
    if (at < 1 || value === '' || value.length > maxLength)
      throw invalid(`${quoted(text)} is not a filter: write name=value, as in error_type=TIMEOUT`)
    if (seen.has(name)) throw invalid(`the filter ${name} is given twice`)
    seen.add(name)
    Object.assign(filter, said(name, value))
  }
  return filter
}

function said(name: string, value: string): ReplayFilter {
  switch (name) {
    case 'error_type':
      return { errorTypes: value.split(',').map((type) => type.trim().toUpperCase()) }
    case 'message':
      return { message: value }
    case 'since':
      return { sinceMs: momentOf(name, value) }
    case 'until':
      return { untilMs: momentOf(name, value) }
    case 'stream_id':
      return { streamId: value }
    case 'key':
      return { key: value }
    default: {
      const near = nearest(name, names)
      const hint = near ? `did you mean ${near}?` : `known: ${names.join(', ')}`
      throw invalid(`unknown filter ${quoted(name)}: ${hint}`)
    }
  }
}

function momentOf(name: string, text: string): number {
  const ms = /^\d{4}-\d\d-\d\d/.test(text) ? toMs(text) : Number.NaN
  if (Number.isNaN(ms))
    throw invalid(`${name} must be a timestamp, as in ${name}=2026-01-31T10:00:00Z`)
  return ms
}

export function matches(filter: ReplayFilter, found: EnvelopePeek): boolean {
  const { errorTypes, message, sinceMs, untilMs, streamId, key } = filter
  const { failedMs } = found
  if (errorTypes && !errorTypes.includes(found.errorType.toUpperCase())) return false
  if (message !== undefined && !found.errorMessage.toLowerCase().includes(message.toLowerCase()))
    return false
  if (sinceMs !== undefined && failedMs < sinceMs) return false
  if (untilMs !== undefined && failedMs >= untilMs) return false
  if (key !== undefined && !found.key?.equals(Buffer.from(key))) return false
  if (streamId === undefined) return true
  return found.isStream && readStream(found.value)?.streamId === streamId
}

/** A record without a node matches any node. */
export function isOf(
  { node, graph }: EnvelopePeek,
  settings: Pick<NodeSettings, 'node' | 'graph'>,
): boolean {
  const isNode = node === settings.node || node === ''
  return isNode && (graph === settings.graph || graph === '')
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, 80))

export function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
