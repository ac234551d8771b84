import { z } from 'zod'
import { checkSchema, schemaFor } from '../check/issues.ts'
import { readPatch } from '../check/patch-payload.ts'
import { isTime, readTime, timeForm } from '../check/read-time.ts'
import { checkBy, checkReason } from '../check/text.ts'
import { RedriveError } from '../errors.ts'
import type { JsonPatch } from '../letter/json-patch.ts'
import { priorities } from '../letter/letter.ts'
import {
  isDestructive,
  type BulkActionName,
  type BulkInput,
  type BulkLimits,
  type Canary,
  type TimeWindow,
} from '../letter/bulk-action.ts'

export interface PlanOptions extends Omit<BulkInput, 'at' | 'undoes'> {
  /** Who plans the action. Required for remove, resolve, edit and undo. Default: operator. */
  by?: string
  /** Why. Required for remove, resolve, edit and undo. */
  reason?: string
  /** Letters per second. Default: no limit. */
  rate?: number
  /**
   * Letters that may wait for their outcome at the same time: for retry those that are due or run
   * (default: 5,000), for replay those that are published at once (default: 100).
   */
  concurrency?: number
  /** Not before this time: an ISO-8601 timestamp or a Date. */
  startAt?: string | Date
  /** Only during this time of day: `{ from: '22:00', to: '06:00' }`. */
  window?: TimeWindow
  /**
   * Acts on 1 letter first, then on 10, 100 and so on, and stops when too many fail. Default:
   * false.
   */
  canary?: boolean | Partial<Canary>
  /** How long the plan can be run. Default: 1 hour. */
  expiresInMs?: number
  /** Retry: when the letters become due, an ISO-8601 timestamp or a Date. Default: at once. */
  at?: string | Date
}

/** Options of the plan of an undo: `by` and `reason` are required. */
export type UndoOptions = Pick<
  PlanOptions,
  'by' | 'reason' | 'rate' | 'concurrency' | 'startAt' | 'window' | 'canary' | 'expiresInMs'
>

const hourMs = 3_600_000
const maxExpiresInMs = 30 * 24 * hourMs
const defaultCanary: Canary = { first: 1, factor: 10, maxFailureShare: 0.05 }
const defaultConcurrency = { retry: 5000, replay: 100, other: 100_000 }

const text = z.string().min(1).max(1000)
const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time like 22:00')
const tags = z.array(z.string().min(1).max(200)).min(1).max(100)

const time = z.custom<string | Date>(isTime, `must be ${timeForm}`)

const schema = schemaFor<PlanOptions>({
  by: z.string().optional(),
  reason: z.string().optional(),
  rate: z.number().positive().max(1_000_000).optional(),
  concurrency: z.int().min(1).max(1_000_000).optional(),
  startAt: time.optional(),
  window: z
    .strictObject({
      from: timeOfDay,
      to: timeOfDay,
      timeZone: z.string().refine(isTimeZone, 'must be an IANA time zone').optional(),
    })
    .refine(({ from, to }) => from !== to, 'must not start and end at the same time')
    .optional(),
  canary: z
    .union([
      z.boolean(),
      z.strictObject({
        first: z.int().min(1).max(100_000).optional(),
        factor: z.number().min(1).max(1000).optional(),
        maxFailureShare: z.number().min(0).max(1).optional(),
      }),
    ])
    .optional(),
  expiresInMs: z.int().min(1000).max(maxExpiresInMs).optional(),
  at: time.optional(),
  includeSuperseded: z.boolean().optional(),
  to: text.optional(),
  priority: z.enum(priorities).optional(),
  addTags: tags.optional(),
  removeTags: tags.optional(),
  patch: z.custom<JsonPatch>(Array.isArray, 'must be an array of JSON Patch operations').optional(),
  transform: text.optional(),
})

function isTimeZone(timeZone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** The options that only one action has. */
const inputKeys: Partial<Record<BulkActionName, readonly Exclude<keyof BulkInput, 'undoes'>[]>> = {
  retry: ['at', 'includeSuperseded'],
  replay: ['to', 'includeSuperseded'],
  priority: ['priority'],
  tag: ['addTags', 'removeTags'],
  edit: ['patch', 'transform'],
}

export interface ReadPlanOptions {
  by: string | undefined
  reason: string | undefined
  input: BulkInput
  limits: BulkLimits
  expiresInMs: number
}

/** Checks the options of a plan, and adds the defaults. */
export function readPlanOptions(action: BulkActionName, options: PlanOptions): ReadPlanOptions {
  checkSchema(schema, options, { thing: 'plan option', code: 'INVALID_INPUT' })
  const { by, reason, rate, startAt, window, canary, expiresInMs = hourMs } = options
  if (isDestructive(action) && (by === undefined || reason === undefined))
    throw new RedriveError(
      'INVALID_INPUT',
      `${action} needs \`by\` and \`reason\`: say who does it and why`,
    )
  const { concurrency = defaultConcurrencyOf(action) } = options
  const limits: BulkLimits = {
    concurrency,
    ...(rate === undefined ? {} : { rate }),
    ...(startAt === undefined ? {} : { startAt: readTime('startAt', startAt) }),
    ...(window === undefined ? {} : { window }),
    ...(canary ? { canary: { ...defaultCanary, ...(canary === true ? {} : canary) } } : {}),
  }
  return {
    by: by === undefined ? undefined : checkBy(by),
    reason: reason === undefined ? undefined : checkReason(reason),
    input: readInput(action, options),
    limits,
    expiresInMs,
  }
}

function defaultConcurrencyOf(action: BulkActionName): number {
  const { retry, replay, other } = defaultConcurrency
  return action === 'retry' ? retry : action === 'replay' ? replay : other
}

/** The options of this action. Those of other actions are rejected. */
function readInput(action: BulkActionName, options: PlanOptions): BulkInput {
  const own = inputKeys[action] ?? []
  for (const [other, keys] of Object.entries(inputKeys))
    for (const key of keys)
      if (options[key] !== undefined && !own.includes(key))
        throw new RedriveError(
          'INVALID_INPUT',
          `plan option "${key}" belongs to ${other}: remove it from this ${action}`,
        )
  const { at, ...rest } = options
  const input: BulkInput = {
    ...(at === undefined ? {} : { at: readTime('at', at) }),
    ...Object.fromEntries(
      own
        .filter((key) => key !== 'at' && rest[key] !== undefined)
        .map((key) => [key, options[key]]),
    ),
  }
  if (input.patch) input.patch = readPatch(input.patch)
  if (input.patch && input.transform !== undefined)
    throw new RedriveError(
      'INVALID_INPUT',
      'plan options "patch" and "transform" exclude each other: give one of them',
    )
  const isOptional = action === 'retry' || action === 'replay'
  if (!isOptional && own.length > 0 && Object.keys(input).length === 0)
    throw new RedriveError('INVALID_INPUT', `${action} needs the plan option ${own.join(' or ')}`)
  return input
}
