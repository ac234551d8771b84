import { RedriveError } from '../../errors.ts'
import * as postgres from '../../backends/postgres/errors.ts'

/** Thrown inside a transaction when what it has seen does not hold any more: it is begun afresh. */
export class Again extends Error {}

/** What is wrong with a value, by the class of the error. */
const refusals: Record<string, string> = {
  '22': 'a value cannot be kept',
  '23': 'a value cannot be kept',
  '54': 'a name or a value is too long: names may have about 2,000 bytes',
}

/** Turns whatever was thrown into an error of ours. */
export function toRedriveError(error: unknown, place: string): RedriveError {
  if (error instanceof Again)
    return new RedriveError(
      'STORE_UNAVAILABLE',
      `${place}: other writers were always first: try again (${error.message})`,
      { cause: error },
    )
  const refusal = refusals[postgres.stateOf(error)?.slice(0, 2) ?? '']
  if (refusal === undefined)
    return postgres.toRedriveError(error, place, {
      noun: 'store',
      unavailable: 'STORE_UNAVAILABLE',
    })
  const message = `${place}: ${refusal} (${postgres.messageOf(error)})`
  return new RedriveError('INVALID_INPUT', message, { cause: error })
}

/** What is lost to a concurrent transaction, and may well succeed when it is tried again. */
export function isCollision(error: unknown): boolean {
  return error instanceof Again || postgres.isCollision(error)
}

/** Whether it is unknown how far the server got: it said nothing, or that it goes away. */
export function isLost(error: unknown): boolean {
  return !(error instanceof Again) && postgres.isLost(error)
}
