import { RedriveError } from '../../errors.ts'
import { isTlsRefusal, unreachable } from '../unreachable.ts'
import type { Tenant } from './tenant.ts'

/**
 * Thrown inside a transaction when the state that it read has changed: the transaction starts over.
 */
export class StateChanged extends Error {}

/** The SQLSTATE of an error of the server, undefined for errors of the connection. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && code !== 'EPIPE'
    ? code
    : undefined
}

const conflict = 'other writers were always first: try again'

/** The cause and the fix by SQLSTATE, or by its first three or two characters. */
const adviceFor = ({ noun }: Tenant): Record<string, string> => ({
  '08': 'the connection failed',
  '25006': 'the server is read-only: it may be a standby, or in the middle of a failover',
  '28': 'the server rejected the user or the password: correct the URL',
  '3D000': 'the database does not exist: create it',
  '3F000': `the schema was dropped: open the ${noun} again to create it`,
  '42P01': `a table was dropped: open the ${noun} again to create it`,
  '42501': 'the user lacks a privilege: grant it CREATE on the database, or a schema of its own',
  '40': conflict,
  '53': 'the server has no connection, memory or disk space left',
  '55P03': 'a lock was not available in time: try again',
  '57014': 'the statement timed out: try again',
  '57P': 'the server is shutting down or starting up',
  '58': 'the server had a disk or system error: see its log',
  XX: 'the server found corrupted data: see its log',
})

/** The problem with a value, by the class of the SQLSTATE. */
const invalidValues: Record<string, string> = {
  '22': 'a value cannot be stored',
  '23': 'a value cannot be stored',
  '54': 'a name or a value is too long: names may have about 2,000 bytes',
}

/** Classes of errors that repeating does not fix: user, database, privileges, unknown features. */
const refusals = ['28', '3D', '3F', '42', '0A']

/** Whether the server or the URL must be corrected: trying again does not help. */
export function isRefusal(error: unknown): boolean {
  if (isTlsRefusal(error)) return true
  const state = sqlStateOf(error)
  if (state !== undefined) return refusals.includes(state.slice(0, 2))
  const { syscall } = error as { syscall?: unknown }
  // A certificate or key named in the URL cannot be read, or the server has no TLS.
  return syscall === 'open' || /does not support SSL/.test(messageOf(error))
}

/**
 * Translates an error of `pg` or of the server. No other function knows the meaning of a SQLSTATE.
 */
export function toRedriveError(error: unknown, place: string, tenant: Tenant): RedriveError {
  if (error instanceof RedriveError) return error
  const state = sqlStateOf(error)
  const problem = invalidValues[state?.slice(0, 2) ?? '']
  const cause = problem ?? unreachable(error) ?? explain(error, state, tenant)
  const code = problem === undefined ? tenant.unavailable : 'INVALID_INPUT'
  return new RedriveError(code, `${place}: ${cause} (${messageOf(error)})`, { cause: error })
}

function explain(error: unknown, state: string | undefined, tenant: Tenant): string {
  if (error instanceof StateChanged) return conflict
  if (state === undefined) return 'the server cannot be reached, or did not answer in time'
  const advice = adviceFor(tenant)
  const known = advice[state] ?? advice[state.slice(0, 3)] ?? advice[state.slice(0, 2)]
  return known ?? `the ${tenant.noun} failed`
}

/** The message of an error; some socket errors have it only in their nested errors. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(messageOf).join(', ')
  return error instanceof Error ? error.message : String(error)
}

/** Whether a concurrent transaction was the cause, so that another try may succeed. */
export function isCollision(error: unknown): boolean {
  return (
    error instanceof StateChanged || ['40001', '40P01', '55P03'].includes(sqlStateOf(error) ?? '')
  )
}

/** Whether the connection is lost: the server did not answer, or is going away. */
export function isLost(error: unknown): boolean {
  if (error instanceof RedriveError || error instanceof StateChanged || isBug(error)) return false
  const state = sqlStateOf(error)
  return state === undefined || state.startsWith('57P') || state.startsWith('08')
}

const isBug = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError
