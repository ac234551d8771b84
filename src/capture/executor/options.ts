import { z } from 'zod'
import { RedriveError } from '../../errors.ts'
import { checkSchema, functionSchema, schemaFor } from '../../check/issues.ts'
import { checkNames, withoutUndefined } from '../../check/keys.ts'
import { categories, type Failure } from '../../letter/letter.ts'
import { checkQueueName } from '../../check/queue-name.ts'
import {
  resiliencePolicies,
  type BreakerLimits,
  type ExecutorOptions,
  type ResiliencePolicy,
  type RetryOn,
  type ResolvedPolicy,
} from './resilience.ts'

const defaults = {
  attempts: 3,
  initialDelayMs: 1000,
  maxDelayMs: 30_000,
  multiplier: 2,
  jitter: 0.1,
  retryOn: { categories: ['transient', 'network', 'timeout', 'rate-limit', 'dependency'] },
  timeoutMs: 30_000,
} as const satisfies ResiliencePolicy

const breakerDefaults = { failures: 5, successes: 2, openMs: 30_000 }

/** Timers of Node have 31 bits. */
const durationMs = z
  .number()
  .min(0)
  .max(2 ** 31 - 1)
const positiveMs = durationMs.min(1)
const positive = z.int().min(1)

const retryOnSchema = schemaFor<RetryOn>({
  errors: z.array(z.string().min(1)).optional(),
  statuses: z.array(z.int().min(100).max(599)).optional(),
  categories: z.array(z.enum(categories)).optional(),
})
const breakerSchema = schemaFor<BreakerLimits>({
  failures: positive.optional(),
  successes: positive.optional(),
  openMs: positiveMs.optional(),
  halfOpenCalls: positive.optional(),
})
const bulkheadSchema = z.strictObject({ concurrent: positive, queue: z.int().min(0).optional() })
const policySchema = schemaFor<ResiliencePolicy>({
  attempts: positive.max(100).optional(),
  initialDelayMs: durationMs.optional(),
  maxDelayMs: durationMs.optional(),
  multiplier: z.number().min(1).optional(),
  jitter: z.union([z.enum(['none', 'full']), z.number().min(0).max(1)]).optional(),
  retryOn: z
    .union(
      [functionSchema<(error: unknown, failure: Failure) => boolean>(), retryOnSchema],
      'must be a function or an object with errors, statuses, categories',
    )
    .optional(),
  timeoutMs: positiveMs.optional(),
  overallTimeoutMs: positiveMs.optional(),
  breaker: z.union([z.literal(false), breakerSchema]).optional(),
  bulkhead: bulkheadSchema.optional(),
  fallback: functionSchema<NonNullable<ResiliencePolicy['fallback']>>().optional(),
  queue: z.string().optional(),
})
const optionsSchema = schemaFor<ExecutorOptions>({
  policies: z.record(z.string(), policySchema).optional(),
})

/**
 * Checks the options and returns all policies by name, including the built-in ones. Throws
 * INVALID_CONFIG that names the wrong key and what is allowed.
 */
export function readPolicies(options: ExecutorOptions): Map<string, ResolvedPolicy> {
  checkNames('executor option "policies"', (Object(options) as ExecutorOptions).policies)
  checkSchema(optionsSchema, options, { thing: 'executor option', code: 'INVALID_CONFIG' })
  const builtIn: Record<string, ResiliencePolicy> = resiliencePolicies
  const given = options.policies ?? {}
  const names = new Set([...Object.keys(builtIn), ...Object.keys(given)])
  return new Map(
    [...names].map((name) => {
      const known = Object.hasOwn(builtIn, name) ? builtIn[name]! : {}
      const own = Object.hasOwn(given, name) ? given[name]! : {}
      return [name, resolvePolicy(name, known, own)]
    }),
  )
}

function resolvePolicy(
  name: string,
  known: ResiliencePolicy,
  own: ResiliencePolicy,
): ResolvedPolicy {
  const { breaker: _breaker, bulkhead, ...rest } = { ...known, ...withoutUndefined(own) }
  return {
    ...defaults,
    ...rest,
    name,
    queue: checkQueueName(rest.queue ?? name),
    breaker: resolveBreaker(name, known.breaker, own.breaker),
    ...(bulkhead ? { bulkhead: { queue: 0, ...withoutUndefined(bulkhead) } } : {}),
  }
}

function resolveBreaker(
  name: string,
  known: ResiliencePolicy['breaker'] = false,
  own: ResiliencePolicy['breaker'] = known,
): BreakerLimits | false {
  if (own === false) return false
  const limits = { ...breakerDefaults, ...known, ...withoutUndefined(own) }
  const { successes, halfOpenCalls = successes } = limits
  if (successes <= halfOpenCalls) return { ...limits, halfOpenCalls }
  throw new RedriveError(
    'INVALID_CONFIG',
    `executor option "policies.${name}.breaker": successes (${successes}) must not be above halfOpenCalls (${halfOpenCalls})`,
  )
}
