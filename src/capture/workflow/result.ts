import { isList, read } from '../../letter/reading.ts'
import { isFailedResult } from '../../letter/result.ts'

/** A run that failed completely or partially, and the targets that must run again. */
export interface WorkflowFailure {
  status: 'failed' | 'partial'
  error: unknown
  failed: string[]
}

export interface ReadOptions {
  targets: readonly string[]
  /** Whether a retry cannot help against this error. */
  isPermanent: (error: unknown) => boolean
}

/**
 * Reads the failure that a workflow returned: `{ ok: false }` or `{ status: 'failed' | 'partial'
 * }`; undefined for other values. A partial failure may name the failed targets as `failed` or
 * `results`; only targets that are clearly done are left out of the next run. Never throws.
 */
export function readFailure(returned: unknown, options: ReadOptions): WorkflowFailure | undefined {
  const status = typeof returned === 'string' ? '' : statusOf(returned)
  const partial = status === 'partial'
  if (!partial && status !== 'failed' && !isFailedResult(returned)) return undefined
  const parts = partsOf(read(returned, 'results'))
  const all = [...options.targets]
  const failed = partial ? failedTargets(read(returned, 'failed'), parts, all) : all
  const error = errorOf(returned) ?? combineErrors(errorsOf(returned, parts), failed, options)
  return { status: partial ? 'partial' : 'failed', error, failed }
}

/** The result for one target. */
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
  // A failed item that is not a known target could be any of them.
  for (const target of named) if (target === undefined || !known.has(target)) return all
  const isListed = itemsOf(listed).length > 0
  const left = all.filter((target) => named.has(target) || (!isListed && !done.has(target)))
  return left.length > 0 ? left : all
}

function targetOf(item: unknown): string | undefined {
  const target = typeof item === 'string' ? item : read(item, 'target')
  return typeof target === 'string' ? target : undefined
}

/** Results by target: an array of results with their targets, or an object with targets as keys. */
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

function partOf(target: string | undefined, result: unknown): Part {
  const ok = typeof result === 'boolean' ? result : read(result, 'ok')
  const status = statusOf(result)
  const error = read(result, 'error') ?? read(result, 'reason')
  const isDone = ok === true || doneWords.has(status)
  const isFailed = ok === false || hasValue(error) || status === 'failed' || status === 'partial'
  return { target, error, state: isFailed ? 'failed' : isDone ? 'done' : 'unclear' }
}

/** A status in lower case, from a string or a field; empty if there is none. */
function statusOf(result: unknown): string {
  const status = typeof result === 'string' ? result : read(result, 'status')
  return typeof status === 'string' ? status.toLowerCase() : ''
}

function errorOf(returned: unknown): unknown {
  const error = read(returned, 'error')
  return hasValue(error) ? error : undefined
}

function errorsOf(returned: unknown, parts: readonly Part[]): unknown[] {
  const errors = read(returned, 'errors')
  const listed = isList(errors) ? itemsOf(errors) : keysOf(errors).map((key) => read(errors, key))
  const present = listed.filter(hasValue)
  return present.length > 0 ? present : parts.map(({ error }) => error).filter(hasValue)
}

/** Maximum number of errors that are read; a letter stores fewer. */
const maxErrors = 100

/**
 * Combines many errors into one. Errors that a retry cannot help are left out while there are
 * others: one forbidden target must not prevent the retry of the rest. They are reported when only
 * they remain.
 */
function combineErrors(
  errors: unknown[],
  failed: readonly string[],
  options: ReadOptions,
): unknown {
  const firstErrors = errors.slice(0, maxErrors)
  const retryable = firstErrors.filter((error) => !options.isPermanent(error))
  const reported = retryable.length > 0 ? retryable : firstErrors
  if (reported.length === 1) return reported[0]
  const count = options.targets.length
  const what = count > 0 ? `${failed.length} of ${count} targets failed` : 'the workflow failed'
  return reported.length > 0 ? new AggregateError(reported, what) : new Error(what)
}

function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** Maximum length of a list of targets. */
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
