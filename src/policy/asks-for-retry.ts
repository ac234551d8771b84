import { header } from '../letter/failure.ts'
import { read } from '../letter/reading.ts'

const maxErrors = 16

/** Flags of retryable errors: those of AWS and Kafka, and common names in custom classes. */
const flags = ['$retryable', 'retriable', 'canRetry', 'retryable', 'isRetryable']

/** Whether an error or one of its causes declares itself retryable. Never throws. */
export function asksForRetry(thrown: unknown): boolean {
  const errors = [thrown]
  for (let index = 0; index < errors.length; index++) {
    const error = errors[index]
    if (typeof error !== 'object' || error === null) continue
    if (flags.some((flag) => isSet(read(error, flag))) || isLabelled(error)) return true
    for (const headers of [read(error, 'headers'), read(read(error, 'response'), 'headers')])
      if (header(headers, 'x-should-retry') === 'true') return true
    const nested = read(error, 'errors')
    for (const next of [read(error, 'cause'), read(nested, 0), read(nested, 1)])
      if (next !== undefined && errors.length < maxErrors) errors.push(next)
  }
  return false
}

/** AWS sets an object with details. A method of this name is not called, so it does not count. */
function isSet(flag: unknown): boolean {
  return flag === true || (typeof flag === 'object' && flag !== null)
}

/** MongoDB sets labels such as "RetryableWriteError" and "TransientTransactionError". */
function isLabelled(error: object): boolean {
  const labels = read(error, 'errorLabels')
  return [0, 1, 2, 3].some((index) => {
    const label = read(labels, index)
    return typeof label === 'string' && /^(?:Retryable|Transient)/.test(label)
  })
}
