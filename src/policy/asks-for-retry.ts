import { header } from '../letter/failure.ts'
import { read } from '../letter/reading.ts'

const maxLooked = 16

/** What clients set on an error that may be tried again: AWS, Kafka, and what people call it in classes of their own. */
const flags = ['$retryable', 'retriable', 'canRetry', 'retryable', 'isRetryable']

/** Whether an error, or one that led to it, says of itself that trying again can help. Never throws. */
export function asksForRetry(thrown: unknown): boolean {
  const looked = [thrown]
  for (let index = 0; index < looked.length; index++) {
    const error = looked[index]
    if (typeof error !== 'object' || error === null) continue
    if (flags.some((flag) => isYes(read(error, flag))) || isLabelled(error)) return true
    for (const headers of [read(error, 'headers'), read(read(error, 'response'), 'headers')])
      if (header(headers, 'x-should-retry') === 'true') return true
    const errors = read(error, 'errors')
    for (const next of [read(error, 'cause'), read(errors, 0), read(errors, 1)])
      if (next !== undefined && looked.length < maxLooked) looked.push(next)
  }
  return false
}

/** AWS gives an object, which says more about how; a method of this name says nothing until it is called. */
function isYes(flag: unknown): boolean {
  return flag === true || (typeof flag === 'object' && flag !== null)
}

/** MongoDB gives labels, as "RetryableWriteError" and "TransientTransactionError". */
function isLabelled(error: object): boolean {
  const labels = read(error, 'errorLabels')
  return [0, 1, 2, 3].some((index) => {
    const label = read(labels, index)
    return typeof label === 'string' && /^(?:Retryable|Transient)/.test(label)
  })
}
