import { RedriveError } from '../../errors.ts'
import { isTlsRefusal, unreachable } from '../unreachable.ts'
import type { Tenant } from './tenant.ts'

/** The five characters by which Postgres names an error, undefined for errors of the connection. */
export function stateOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && code !== 'EPIPE'
    ? code
    : undefined
}

const adviceTo = ({ noun }: Tenant): Record<string, string> => ({
  '08': 'the connection failed',
  '25006': 'the server is read-only: it may be a standby, or in the middle of a failover',
  '28': 'the server refused the user or the password: correct the URL',
  '3D000': 'the database is not there: create it',
  '3F000': `the schema is gone: open the ${noun} again to make it`,
  '42P01': `a table is gone: open the ${noun} again to make it`,
  '42501': 'this user may not do that: grant it CREATE on the database, or a schema of its own',
  '40': 'other writers were always first: try again',
  '53': 'the server has no connection, memory or disk space left',
  '55P03': 'a lock was not free in time: try again',
  '57014': 'the server took too long: try again',
  '57P': 'the server is shutting down or starting up',
  '58': 'the server had a failure of its disk or system: look at its log',
  XX: 'the server found its data damaged: look at its log',
})

/** Classes of errors by which a server refuses what it will refuse again: user, database, rights, and what it does not know at all. */
const refusals = ['28', '3D', '3F', '42', '0A']

/** The server or the URL must be corrected: trying again does not help. */
export function isRefusal(error: unknown): boolean {
  if (isTlsRefusal(error)) return true
  const state = stateOf(error)
  if (state !== undefined) return refusals.includes(state.slice(0, 2))
  const { syscall } = error as { syscall?: unknown }
  // A certificate or key that the URL names cannot be read, or the server speaks no TLS.
  return syscall === 'open' || /does not support SSL/.test(messageOf(error))
}

/** Turns whatever was thrown into an error of ours. The one place that knows what the codes of Postgres mean. */
export function toRedriveError(error: unknown, place: string, tenant: Tenant): RedriveError {
  if (error instanceof RedriveError) return error
  const what = unreachable(error) ?? meaningOf(stateOf(error), tenant)
  return new RedriveError(tenant.unavailable, `${place}: ${what} (${messageOf(error)})`, {
    cause: error,
  })
}

function meaningOf(state: string | undefined, tenant: Tenant): string {
  if (state === undefined) return 'the server cannot be reached, or did not answer in time'
  const advice = adviceTo(tenant)
  const known = advice[state] ?? advice[state.slice(0, 3)] ?? advice[state.slice(0, 2)]
  return known ?? `the ${tenant.noun} failed`
}

/** Some errors of sockets have their words in the errors they gather. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(messageOf).join(', ')
  return error instanceof Error ? error.message : String(error)
}

/** What is lost to a concurrent transaction, and may well succeed when it is tried again. */
export function isCollision(error: unknown): boolean {
  return ['40001', '40P01', '55P03'].includes(stateOf(error) ?? '')
}

/** Whether it is unknown how far the server got: it said nothing, or that it goes away. */
export function isLost(error: unknown): boolean {
  if (error instanceof RedriveError || isBug(error)) return false
  const state = stateOf(error)
  return state === undefined || state.startsWith('57P') || state.startsWith('08')
}

export const isBug = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError
