import { RedriveError } from '../../errors.ts'
import { categories, type ErrorCategory } from '../../letter/letter.ts'
import { nearest } from '../../check/nearest.ts'
import { readPolicy, type QueuePolicy } from '../../options/options.ts'
import { neverAgain } from '../../policy/backoff.ts'
import { checkQueueName } from '../../check/queue-name.ts'
import type { WorkflowFn } from './task.ts'

/**
 * Which failures `run` keeps. automatic: all. selective: those whose category is selected. manual: none, but
 * `enqueue` does. disabled: none, and `enqueue` keeps none either.
 */
const strategies = ['automatic', 'selective', 'manual', 'disabled'] as const
export type Strategy = (typeof strategies)[number]

/** Options of `dlq.workflow`. What can be set for a queue can be set here too. */
export interface WorkflowOptions<T = unknown> extends QueuePolicy {
  /** The queue of its letters. `workflow` unless said. */
  name?: string
  /** automatic unless said; `setStrategy` changes it at run time. */
  strategy?: Strategy
  /** Runs a task, first and again. Give it here, so that letters from before a restart can be retried at once. */
  handler?: WorkflowFn<T>
  /** What `selective` keeps. Unless said, all but permission, validation and permanent. */
  select?: readonly ErrorCategory[]
}

export interface WorkflowSettings<T> {
  name: string
  strategy: Strategy
  handler: WorkflowFn<T> | undefined
  select: ReadonlySet<ErrorCategory>
  policy: QueuePolicy
}

const ownKeys = ['name', 'strategy', 'handler', 'select'] satisfies (keyof WorkflowOptions)[]

/** Checks the options once. Throws INVALID_CONFIG that names what is wrong and what is allowed. */
export function readWorkflowOptions<T>(options: WorkflowOptions<T>): WorkflowSettings<T> {
  const { name = 'workflow', strategy = 'automatic', handler, select, ...policy } = options
  for (const key of Object.keys(policy)) mustNotMean(key)
  if (handler !== undefined && typeof handler !== 'function')
    throw new RedriveError('INVALID_CONFIG', 'workflow option "handler": must be a function')
  return {
    name: checkQueueName(name),
    strategy: readStrategy(strategy),
    handler,
    select: readSelect(select),
    policy: readPolicy(policy),
  }
}

/** A key that is almost one of ours is a slip; `readPolicy` refuses all other strangers. */
function mustNotMean(key: string): void {
  const near = nearest(key, ownKeys)
  if (near === undefined) return
  throw new RedriveError(
    'INVALID_CONFIG',
    `unknown workflow option "${key}": did you mean "${near}"?`,
  )
}

export function readStrategy(strategy: Strategy): Strategy {
  return readOneOf(strategies, strategy, 'workflow option "strategy"')
}

function readSelect(select: readonly ErrorCategory[] | undefined): ReadonlySet<ErrorCategory> {
  if (select === undefined)
    return new Set(categories.filter((category) => !neverAgain.has(category)))
  if (!Array.isArray(select))
    throw new RedriveError('INVALID_CONFIG', 'workflow option "select": must be a list')
  return new Set(
    select.map((category) => readOneOf(categories, category, 'workflow option "select"')),
  )
}

function readOneOf<T extends string>(known: readonly T[], value: T, what: string): T {
  if (known.includes(value)) return value
  const got = String(value).slice(0, 80)
  const near = nearest(got, known)
  const hint = near ? `did you mean "${near}"?` : `known: ${known.join(', ')}`
  throw new RedriveError('INVALID_CONFIG', `${what}: "${got}" is unknown: ${hint}`)
}
