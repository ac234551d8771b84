import { RedriveError, type ErrorCode } from '../../errors.ts'

/** Thrown inside a transaction when what it has seen does not hold any more: it is begun afresh. */
export class Again extends Error {}

/** The five characters by which Postgres names an error, undefined for errors of the connection. */
function stateOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && code !== 'EPIPE'
    ? code
    : undefined
}

const advice: Record<string, [code: ErrorCode, advice: string]> = {
  '22': ['INVALID_INPUT', 'a value cannot be kept'],
  '23': ['INVALID_INPUT', 'a value cannot be kept'],
  '54': ['INVALID_INPUT', 'a name or a value is too long: names may have about 2,000 bytes'],
  '08': ['STORE_UNAVAILABLE', 'the connection failed'],
  '25006': [
    'STORE_UNAVAILABLE',
    'the server is read-only: it may be a standby, or in the middle of a failover',
  ],
  '28': ['STORE_UNAVAILABLE', 'the server refused the user or the password'],
  '3D000': ['STORE_UNAVAILABLE', 'the database is not there: create it'],
  '3F000': ['STORE_UNAVAILABLE', 'the schema is gone: open the store again to make it'],
  '42P01': ['STORE_UNAVAILABLE', 'a table is gone: open the store again to make it'],
  '42501': ['STORE_UNAVAILABLE', 'this user may not do that: grant it the schema'],
  '40': ['STORE_UNAVAILABLE', 'other writers were always first: try again'],
  '53': ['STORE_UNAVAILABLE', 'the server has no connection, memory or disk space left'],
  '55P03': ['STORE_UNAVAILABLE', 'a lock was not free in time: try again'],
  '57014': ['STORE_UNAVAILABLE', 'the server took too long: try again'],
  '57P': ['STORE_UNAVAILABLE', 'the server is shutting down or starting up'],
  '58': ['STORE_UNAVAILABLE', 'the server had a failure of its disk or system: look at its log'],
  XX: ['STORE_UNAVAILABLE', 'the server found its data damaged: look at its log'],
}

/** Turns whatever was thrown into an error of ours. The one place that knows the codes of Postgres. */
export function troubleOf(error: unknown, place: string): RedriveError {
  if (error instanceof RedriveError) return error
  const state = stateOf(error)
  const known =
    state === undefined
      ? (['STORE_UNAVAILABLE', 'the server cannot be reached, or did not answer in time'] as const)
      : [state, state.slice(0, 3), state.slice(0, 2)].flatMap((key) =>
          advice[key] ? [advice[key]] : [],
        )[0]
  const [code, what] = known ?? ['STORE_UNAVAILABLE', 'the store failed']
  return new RedriveError(code, `${place}: ${what} (${messageOf(error)})`, { cause: error })
}

/** Some errors of sockets have their words in the errors they gather. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(messageOf).join(', ')
  return error instanceof Error ? error.message : String(error)
}

/** What is lost to a concurrent transaction, and may well succeed when it is tried again. */
export function isCollision(error: unknown): boolean {
  return error instanceof Again || ['40001', '40P01', '55P03'].includes(stateOf(error) ?? '')
}

/** Whether it is unknown how far the server got: it said nothing, or that it goes away. */
export function isLost(error: unknown): boolean {
  if (error instanceof RedriveError || error instanceof Again || isBug(error)) return false
  const state = stateOf(error)
  return state === undefined || state.startsWith('57P') || state.startsWith('08')
}

const isBug = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError

/** Whether it is what was asked that is wrong, so that other calls of the batch may fare better. */
export function isOfOneCall(error: unknown): boolean {
  return isBug(error) || /^(22|23|54)/.test(stateOf(error) ?? '')
}
