import { RedriveError } from '../errors.ts'
import { maxNameLength, printable } from '../backends/bounds.ts'

const suffix = '-dlq'

/**
 * The conventional name of the mailbox for dead letters of another: `{source}-dlq`. Rejects a name
 * that would be too long with INVALID_INPUT.
 */
export function deadLetterName(source: string): string {
  printable('the name of a mailbox', source)
  const name = `${source}${suffix}`
  if (name.length <= maxNameLength) return name
  throw new RedriveError(
    'INVALID_INPUT',
    `the name of a mailbox has at most ${maxNameLength} characters, but "${source.slice(0, 40)}…" with "${suffix}" has ${name.length}: use a source name of at most ${maxNameLength - suffix.length} characters, or choose the name of the dead letter mailbox yourself`,
  )
}
