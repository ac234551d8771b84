import { isList, read } from '../../letter/reading.ts'
import { isFailedResult } from '../../letter/result.ts'

/** A run that failed, in whole or in part, and the targets that have to run again. */
export interface WorkflowFailure {
  status: 'failed' | 'partial'
  error: unknown
  failed: string[]
}

export interface Reading {
  targets: readonly string[]
  /** Whether running into this error again is certain. */
  isHopeless: (error: unknown) => boolean
}

/**
 * What a workflow said by returning. A failure is `{ ok: false }` or `{ status: 'failed' | 'partial' }`; undefined when it says
 * neither. A partial one may name what failed, as `failed` or `results`; only what is clearly done is left out of the
 * next run. It never throws, whatever was returned.
 */
export function readFailure(returned: unknown, reading: Reading): WorkflowFailure | undefined {
  const said = typeof returned === 'string' ? '' : statusOf(returned)
  const partial = said === 'partial'
  if (!partial && said !== 'failed' && !isFailedResult(returned)) return undefined
  const parts = partsOf(read(returned, 'results'))
  const all = [...reading.targets]
  const failed = partial ? failedTargets(read(returned, 'failed'), parts, all) : all
  const error = errorOf(returned) ?? combined(errorsOf(returned, parts), failed, reading)
  return { status: partial ? 'partial' : 'failed', error, failed }
}

/** What was said about one target. */
interface Part {
  target: string | undefined
  state: 'done' | 'failed' | 'unclear'
  error: unknown
}

function failedTargets(listed: unknown, parts: readonly Part[], all: string[]): string[] {
  const known = new Set(all)
  const named = new Set<string | undefined>(itemsOf(listed).map(targetOf))
  const done = new Set<string | undefined>()
  for (const { target, state } of parts) {
    if (state === 'failed') named.add(target)
    if (state === 'done') done.add(target)
  }
  // What failed and is none of the targets could be any of them.
  for (const target of named) if (target === undefined || !known.has(target)) return all
  const isListed = itemsOf(listed).length > 0
  const left = all.filter((target) => named.has(target) || (!isListed && !done.has(target)))
  return left.length > 0 ? left : all
}

function targetOf(item: unknown): string | undefined {
  const target = typeof item === 'string' ? item : read(item, 'target')
  return typeof target === 'string' ? target : undefined
}

/** Results by target: a list of them with their targets, or an object with a target for each key. */
function partsOf(results: unknown): Part[] {
  if (isList(results)) return itemsOf(results).map((item) => partOf(targetOf(item), item))
  return keysOf(results).map((key) => partOf(key, read(results, key)))
}

const doneWords = new Set([
  'completed',
  'done',
  'fulfilled',
  'ok',
  'resolved',
  'succeeded',
  'success',
])

function partOf(target: string | undefined, said: unknown): Part {
  const ok = typeof said === 'boolean' ? said : read(said, 'ok')
  const status = statusOf(said)
  const error = read(said, 'error') ?? read(said, 'reason')
  const isDone = ok === true || doneWords.has(status)
  const isFailed = ok === false || isSomething(error) || status === 'failed' || status === 'partial'
  return { target, error, state: isFailed ? 'failed' : isDone ? 'done' : 'unclear' }
}

/** A status in lower case, said as such or as a field; empty when there is none. */
function statusOf(said: unknown): string {
  const status = typeof said === 'string' ? said : read(said, 'status')
  return typeof status === 'string' ? status.toLowerCase() : ''
}

function errorOf(returned: unknown): unknown {
  const error = read(returned, 'error')
  return isSomething(error) ? error : undefined
}

function errorsOf(returned: unknown, parts: readonly Part[]): unknown[] {
  const errors = read(returned, 'errors')
  const listed = isList(errors) ? itemsOf(errors) : keysOf(errors).map((key) => read(errors, key))
  const told = listed.filter(isSomething)
  return told.length > 0 ? told : parts.map(({ error }) => error).filter(isSomething)
}

/** How many errors are looked at; a letter keeps fewer. */
const maxErrors = 100

/**
 * Many errors as one. Those that a retry cannot help are left out while there are others: one target that is forbidden must not
 * keep the rest from being retried. They come back when they alone are left.
 */
function combined(errors: unknown[], failed: readonly string[], reading: Reading): unknown {
  const some = errors.slice(0, maxErrors)
  const hopeful = some.filter((error) => !reading.isHopeless(error))
  const told = hopeful.length > 0 ? hopeful : some
  if (told.length === 1) return told[0]
  const count = reading.targets.length
  const what = count > 0 ? `${failed.length} of ${count} targets failed` : 'the workflow failed'
  return told.length > 0 ? new AggregateError(told, what) : new Error(what)
}

function isSomething(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** More than this is not a list of targets. */
const maxItems = 1_000_000

function itemsOf(value: unknown): unknown[] {
  const length = isList(value) ? read(value, 'length') : 0
  if (typeof length !== 'number' || length > maxItems) return []
  return Array.from({ length }, (_, index) => read(value, String(index)))
}

function keysOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  try {
    return Object.keys(value)
  } catch {
    return []
  }
}
