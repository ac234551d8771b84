import { RedriveError } from '../errors.ts'
import { describeValue } from './keys.ts'

// oxlint-disable-next-line no-control-regex -- the pattern searches for control characters
const unprintable = /[\u0000-\u001f\u007f]/

export function isQueueName(name: unknown): boolean {
  if (typeof name !== 'string' || name === '' || name.length > 200) return false
  return !unprintable.test(name) && name.isWellFormed()
}

/**
 * Rejects an invalid queue name: 1 to 200 characters without control characters and lone
 * surrogates.
 */
export function checkQueueName(name: unknown): string {
  if (isQueueName(name)) return name as string
  throw new RedriveError(
    'INVALID_INPUT',
    `a queue name must be a string of 1 to 200 characters without control characters and lone surrogates, got ${describeValue(name)}`,
  )
}
