import { RedriveError } from '../errors.ts'

// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const unprintable = /[\u0000-\u001f\u007f]/

export function isQueueName(name: unknown): boolean {
  if (typeof name !== 'string' || name === '' || name.length > 200) return false
  return !unprintable.test(name) && name.isWellFormed()
}

/** Queue names are for people to read and filter by: any text of 1 to 200 characters without control characters and halves of characters. */
export function checkQueueName(name: unknown): string {
  if (isQueueName(name)) return name as string
  const got = typeof name === 'string' ? JSON.stringify(name.slice(0, 80)) : typeof name
  throw new RedriveError(
    'INVALID_INPUT',
    `a queue name is a text of 1 to 200 characters without control characters or halves of characters, got ${got}`,
  )
}
