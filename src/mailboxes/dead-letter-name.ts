import { RedriveError } from '../errors.ts'
import { maxNameLength, printable } from '../backends/bounds.ts'

const suffix = '-dlq'

/** The name of the mailbox for the dead letters of another, by convention: `{source}-dlq`. INVALID_INPUT when it would be too long. */
export function deadLetterName(source: string): string {
  printable('the name of a mailbox', source)
  const name = `${source}${suffix}`
  if (name.length <= maxNameLength) return name
  throw new RedriveError(
    'INVALID_INPUT',
    `the name of a mailbox has ${maxNameLength} characters at the most, and "${suffix}" makes ${name.length} of "${source.slice(0, 40)}…": use a source name of ${maxNameLength - suffix.length} characters or fewer, or name the dead letter mailbox yourself`,
  )
}
