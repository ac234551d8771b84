import { parseTime } from '../check/read-time.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { toTimestamp } from '../letter/time.ts'
import { jsonOf, type CaptureContext } from './context.ts'

/**
 * Adds the fields of the context that a letter has only if they are given. Only known keys: a
 * letter with others could not be read back.
 */
export function addOptional(letter: DeadLetter, context: CaptureContext): void {
  const { dedupeKey, lane, tenant, traceparent, headers, dependsOn, task, github } = context
  if (dedupeKey !== undefined) letter.dedupeKey = dedupeKey
  if (lane !== undefined) letter.lane = lane
  if (tenant !== undefined) letter.tenant = tenant
  // JavaScript callers may give null.
  if (traceparent !== undefined && traceparent !== null) letter.traceparent = traceparent
  if (headers) letter.headers = jsonOf(headers) as Record<string, string>
  // Ids are stored in lower case, like the id of the letter.
  if (dependsOn) letter.dependsOn = dependsOn.map((id) => id.toLowerCase())
  if (task) letter.task = { id: task.id, description: task.description, source: task.source }
  if (github) letter.github = githubOf(github)
  if (context.expiresAt) letter.expiresAt = toTimestamp(parseTime(context.expiresAt))
}

type Github = NonNullable<DeadLetter['github']>

function githubOf({ owner, repo, entityNumber, entityType }: Github): Github {
  return {
    owner,
    repo,
    ...(entityNumber === undefined ? {} : { entityNumber }),
    ...(entityType === undefined ? {} : { entityType }),
  }
}
