import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { diffLines } from 'diff'
import type { Json, Payload } from './letter.ts'
import { decodeText, kindOf } from './payload.ts'
import { toPointer } from './json-pointer.ts'

/** A changed value of a JSON payload. Absent `before`: it was added. Absent `after`: removed. */
export interface JsonChange {
  /** JSON Pointer: in the earlier payload, or in the later one for an added value. */
  path: string
  before?: Json
  after?: Json
}

/** Lines of text that changed. An empty list: nothing was there. */
export interface LineChange {
  /** The first line in the earlier payload, from 1. */
  line: number
  before: string[]
  after: string[]
}

export interface BytesFacts {
  size: number
  sha256: string
}

/** The differences between two payloads, by the kind of their content. */
export type PayloadDiff = {
  contentType: { before: string; after: string }
  /** True: there are more changes than the list has. */
  truncated: boolean
} & (
  | { kind: 'same' }
  | { kind: 'json'; changes: JsonChange[] }
  | { kind: 'text'; changes: LineChange[] }
  | { kind: 'bytes'; before: BytesFacts; after: BytesFacts }
)

type Content = Pick<Payload, 'bytes' | 'contentType'>

const maxChanges = 1000
/** Limits the time for payloads that have little in common: they count as replaced. */
const maxEditLength = 2000

/**
 * The differences between two payloads: for JSON the values that changed, for text the lines, for
 * other bytes their sizes and hashes. Never throws.
 */
export function diffPayloads(before: Content, after: Content): PayloadDiff {
  const about = {
    contentType: { before: before.contentType, after: after.contentType },
    truncated: false,
  }
  if (Buffer.compare(before.bytes, after.bytes) === 0) return { ...about, kind: 'same' }
  const changes = tryDiffJson(before, after)
  if (changes) return { ...about, kind: 'json', ...cut(changes) }
  const decoded = [textOf(before), textOf(after)] as const
  if (decoded[0] !== undefined && decoded[1] !== undefined)
    return { ...about, kind: 'text', ...cut(diffText(decoded[0], decoded[1])) }
  return { ...about, kind: 'bytes', before: factsOf(before), after: factsOf(after) }
}

function cut<T>(changes: T[]): { changes: T[]; truncated: boolean } {
  return { changes: changes.slice(0, maxChanges), truncated: changes.length > maxChanges }
}

function textOf({ bytes, contentType }: Content): string | undefined {
  if (kindOf(contentType) === 'bytes') return undefined
  try {
    return decodeText(bytes, contentType)
  } catch {
    return undefined
  }
}

/** Undefined if one of the payloads is not JSON, or nested too deep. */
function tryDiffJson(before: Content, after: Content): JsonChange[] | undefined {
  try {
    const changes: JsonChange[] = []
    diffJson(parse(before), parse(after), [], changes)
    return changes
  } catch {
    return undefined
  }
}

/** Markers of JS values are compared as the JSON that they are. */
function parse(content: Content): Json {
  const kind = kindOf(content.contentType)
  const text = kind === 'json' || kind === 'value' ? textOf(content) : undefined
  return JSON.parse((text ?? '').replace(/^\ufeff/, '')) as Json
}

/** Deeper values are compared as a whole. */
const maxDepth = 200

function diffJson(
  before: Json,
  after: Json,
  path: readonly (string | number)[],
  changes: JsonChange[],
): void {
  if (changes.length > maxChanges || isDeepStrictEqual(before, after)) return
  const depth = path.length
  if (depth < maxDepth && Array.isArray(before) && Array.isArray(after))
    diffArrays(before, after, path, changes)
  else if (depth < maxDepth && isObject(before) && isObject(after))
    diffObjects(before, after, path, changes)
  else changes.push({ path: toPointer(path), before, after })
}

function isObject(value: Json): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function diffObjects(
  before: { [key: string]: Json },
  after: { [key: string]: Json },
  path: readonly (string | number)[],
  changes: JsonChange[],
): void {
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const place = [...path, key]
    if (!Object.hasOwn(after, key)) changes.push({ path: toPointer(place), before: before[key]! })
    else if (!Object.hasOwn(before, key))
      changes.push({ path: toPointer(place), after: after[key]! })
    else diffJson(before[key]!, after[key]!, place, changes)
  }
}

/** Equal values at both ends are skipped; the rest is compared by position. */
function diffArrays(
  before: readonly Json[],
  after: readonly Json[],
  path: readonly (string | number)[],
  changes: JsonChange[],
): void {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && isDeepStrictEqual(before[start], after[start])) start += 1
  let end = 0
  while (end < shorter - start && isDeepStrictEqual(before.at(-1 - end), after.at(-1 - end)))
    end += 1
  const lastBefore = before.length - end
  const lastAfter = after.length - end
  for (let at = start; at < Math.max(lastBefore, lastAfter); at += 1) {
    const place = [...path, at]
    if (at >= lastAfter) changes.push({ path: toPointer(place), before: before[at]! })
    else if (at >= lastBefore) changes.push({ path: toPointer(place), after: after[at]! })
    else diffJson(before[at]!, after[at]!, place, changes)
    if (changes.length > maxChanges) return
  }
}

function diffText(before: string, after: string): LineChange[] {
  const parts = diffLines(before, after, { maxEditLength })
  if (!parts) return [{ line: 1, before: linesOf(before), after: linesOf(after) }]
  const changes: LineChange[] = []
  let line = 1
  let open: LineChange | undefined
  for (const { value, added, removed, count } of parts) {
    if (!added && !removed) open = undefined
    else {
      if (!open) changes.push((open = { line, before: [], after: [] }))
      const side = added ? 'after' : 'before'
      open[side] = [...open[side], ...linesOf(value)]
    }
    if (!added) line += count
  }
  return changes
}

function linesOf(text: string): string[] {
  if (text === '') return []
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
}

function factsOf({ bytes }: Content): BytesFacts {
  return { size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}
