import { z } from 'zod'
import { checkSchema, functionSchema, schemaFor } from '../../check/issues.ts'
import { checkOneOf } from '../../check/keys.ts'
import { categories, type ErrorCategory } from '../../letter/letter.ts'
import { readPolicy, type QueuePolicy } from '../../options/options.ts'
import { policyShape } from '../../options/schema.ts'
import { neverAgain } from '../../policy/backoff.ts'
import { checkQueueName } from '../../check/queue-name.ts'
import type { WorkflowFn } from './task.ts'

/**
 * Which failures `run` stores. automatic: all. selective: those whose category is selected. manual:
 * none, but `enqueue` does. disabled: none, also not by `enqueue`.
 */
const strategies = ['automatic', 'selective', 'manual', 'disabled'] as const
export type Strategy = (typeof strategies)[number]

/** Options of `dlq.workflow`, including all options of a queue. */
export interface WorkflowOptions<T = unknown> extends QueuePolicy {
  /** The queue of the letters. Default: `workflow`. */
  name?: string
  /** `setStrategy` changes it at run time. Default: automatic. */
  strategy?: Strategy
  /**
   * Runs a task and its retries. With a handler here, letters from before a restart can be retried
   * at once.
   */
  handler?: WorkflowFn<T>
  /**
   * Categories that `selective` stores. Default: all except permission, validation and permanent.
   */
  select?: readonly ErrorCategory[]
}

export interface WorkflowSettings<T> {
  name: string
  strategy: Strategy
  handler: WorkflowFn<T> | undefined
  select: ReadonlySet<ErrorCategory>
  policy: QueuePolicy
}

const optionsSchema = schemaFor<WorkflowOptions>({
  ...policyShape,
  name: z.string().optional(),
  strategy: z.enum(strategies).optional(),
  handler: functionSchema<WorkflowFn>().optional(),
  select: z.array(z.enum(categories)).optional(),
})

/** Checks the options once. Throws INVALID_CONFIG that names what is wrong and what is allowed. */
export function readWorkflowOptions<T>(options: WorkflowOptions<T>): WorkflowSettings<T> {
  checkSchema(optionsSchema, options, { thing: 'workflow option', code: 'INVALID_CONFIG' })
  const { name = 'workflow', strategy = 'automatic', handler, select, ...policy } = options
  return {
    name: checkQueueName(name),
    strategy,
    handler,
    select: new Set(select ?? categories.filter((category) => !neverAgain.has(category))),
    policy: readPolicy(policy),
  }
}

export function checkStrategy(strategy: Strategy): Strategy {
  checkOneOf('workflow strategy', strategy, strategies, { code: 'INVALID_CONFIG' })
  return strategy
}
