import type { Scope } from '../api/permissions.ts'
import { contentFields, type FilterInput } from '../api/schemas/filter.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import type { LetterFilter } from '../letter/query.ts'
import type { Caller } from './caller.ts'
import { mayReadContent } from './view.ts'
import { checkProbe, type Viewer } from './viewer.ts'

/** Whether a letter is in the scope of a caller. */
export function isInScope(
  { queues, tenants }: Scope,
  { queue, tenant }: Pick<DeadLetter, 'queue' | 'tenant'>,
): boolean {
  return (
    (queues === undefined || queues.includes(queue)) &&
    (tenants === undefined || (tenant !== undefined && tenants.includes(tenant)))
  )
}

interface BoundedFailure {
  queue: string
  tenant?: string | undefined
  dedupeKey?: string | undefined
}

/**
 * The failure as the caller may store it. Without a tenant, it gets the only one of the scope. A
 * dedupeKey of a caller with a scope of tenants counts within the tenant: the same key of another
 * tenant must neither show nor change the letter of that tenant.
 */
export function boundFailure<F extends BoundedFailure>(failure: F, caller: Caller): F {
  const { tenants } = caller.scope
  checkQueue(failure.queue, caller)
  if (tenants === undefined) return failure
  const tenant = tenantOf(failure.tenant, tenants)
  const { dedupeKey: key } = failure
  return { ...failure, tenant, ...(key === undefined ? {} : { dedupeKey: keyOf(tenant, key) }) }
}

/** The slash separates them: an encoded tenant has none. */
function keyOf(tenant: string, dedupeKey: string): string {
  return `${encodeURIComponent(tenant.toWellFormed())}/${dedupeKey}`
}

/** Rejects a queue outside the scope of the caller. */
export function checkQueue(queue: string, { name, scope: { queues } }: Caller): void {
  if (queues === undefined || queues.includes(queue)) return
  throw new RedriveError('FORBIDDEN', `${name} is limited to the queues ${queues.join(', ')}`)
}

/** Whether all letters that can match a filter are in the scope of a caller. */
export function isFilterInScope(
  { queues, tenants }: Scope,
  { queue, tenant }: Pick<LetterFilter, 'queue' | 'tenant'>,
): boolean {
  const isQueue =
    queues === undefined ||
    (queue !== undefined && [queue].flat().every((one) => queues.includes(one)))
  const isTenant = tenants === undefined || (tenant !== undefined && tenants.includes(tenant))
  return isQueue && isTenant
}

/**
 * The filter without letters outside the scope. Rejects fields whose result would tell a caller
 * without `payload:read` what payloads and errors contain, or what redaction hides.
 */
export function boundFilter<F extends LetterFilter | FilterInput>(filter: F, caller: Viewer): F {
  checkContentFields(filter, caller)
  checkProbe(filter as LetterFilter, caller)
  const { queues, tenants } = caller.scope
  return {
    ...filter,
    ...(queues === undefined ? {} : { queue: intersect(filter.queue, queues) }),
    ...(tenants === undefined ? {} : { tenant: tenantOf(filter.tenant, tenants) }),
  }
}

/** Rejects fields of a filter whose values a caller without `payload:read` may not try out. */
export function checkContentFields(filter: LetterFilter | FilterInput, caller: Caller): void {
  const field = contentFields.find((name) => filter[name] !== undefined)
  if (field === undefined || mayReadContent(caller)) return
  throw new RedriveError(
    'FORBIDDEN',
    `${caller.name} may not filter by ${field}: it needs the permission payload:read`,
  )
}

/** The filter without the values that come from payloads and errors. */
export function hideContentFields<F extends LetterFilter | FilterInput>(filter: F): F {
  const hidden: readonly string[] = contentFields
  return Object.fromEntries(Object.entries(filter).filter(([key]) => !hidden.includes(key))) as F
}

function intersect(wanted: string | string[] | undefined, allowed: readonly string[]): string[] {
  if (wanted === undefined) return [...allowed]
  const list = Array.isArray(wanted) ? wanted : [wanted]
  return list.filter((one) => allowed.includes(one))
}

function tenantOf(wanted: string | undefined, allowed: readonly string[]): string {
  if (wanted !== undefined && allowed.includes(wanted)) return wanted
  if (wanted === undefined && allowed.length === 1) return allowed[0]!
  throw new RedriveError(
    'FORBIDDEN',
    `the token is limited to the tenants ${allowed.join(', ')}: set \`tenant\` to one of them`,
  )
}
