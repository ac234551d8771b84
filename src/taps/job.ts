import { RedriveError } from '../errors.ts'
import { decodePayload } from '../letter/payload.ts'
import { latestMs, toTimestamp, type Timestamp } from '../letter/time.ts'
import type { ForeignLetter, ReturnedLetter } from './tap.ts'

/** The data of a job as the body of a letter. */
export function encodeJobData(data: unknown): Pick<ForeignLetter, 'body' | 'contentType'> {
  return { body: Buffer.from(JSON.stringify(data ?? null)), contentType: 'application/json' }
}

/** The data of a job, from a letter that may be edited. */
export function decodeJobData({ body, contentType, messageId }: ReturnedLetter): unknown {
  try {
    return decodePayload({ bytes: body, contentType })
  } catch (error) {
    throw new RedriveError(
      'INVALID_INPUT',
      `the payload of job ${messageId} is not ${contentType}: edit the letter`,
      { cause: error },
    )
  }
}

/** The options of a job that were stored in the origin of its letter. */
export function readJobOptions(json = '{}'): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // The same error as for a value that is not an object.
  }
  throw new RedriveError(
    'INVALID_INPUT',
    'the options of the job (metadata.origin.options) are not a JSON object: an edit has changed them',
  )
}

/** A time of a job, which may be any value. Undefined if it is not a time. */
export function readJobTime(value: Date | number | null | undefined): Timestamp | undefined {
  const ms = Number(value ?? NaN)
  return ms > 0 && ms <= latestMs ? toTimestamp(ms) : undefined
}

/** The values as strings, objects as JSON, without those that are absent. */
export function toOrigin(
  values: Record<string, string | number | object | null | undefined>,
): Record<string, string> {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(
    given.map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]),
  )
}

/** Calls `send`. An error of the other system becomes ours, with the destination. */
export async function sendJob<T>(queue: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send()
  } catch (error) {
    if (error instanceof RedriveError) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new RedriveError(
      'MAILBOX_UNAVAILABLE',
      `could not return the letter to the queue ${queue}: ${why}`,
      { cause: error },
    )
  }
}
