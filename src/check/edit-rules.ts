import type { DeadLetter } from '../letter/letter.ts'
import type { Edit } from '../letter/moves.ts'
import { quote } from './keys.ts'
import { whyUnfitPayload, type JsonSchema } from './payload-schema.ts'

/** What an edit of a letter of a queue must leave as it is, or must satisfy. */
export interface EditRules {
  /** Names of headers, in any case. Headers that begin with `redrive-` are always locked. */
  lockedHeaders: readonly string[]
  payloadSchema?: JsonSchema | undefined
}

/** Why an edit is refused by the rules of the letter's queue. Undefined: it is allowed. */
export function whyEditRefused(
  { queue, headers = {} }: Pick<DeadLetter, 'queue' | 'headers'>,
  edit: Edit,
  { lockedHeaders, payloadSchema }: EditRules,
): string | undefined {
  const name = edit.headers && findChangedHeader(headers, edit.headers, lockedHeaders)
  if (name !== undefined)
    return `header ${quote(name)} is locked in queue ${queue}: give it unchanged in \`headers\``
  const why = edit.payload && payloadSchema && whyUnfitPayload(edit.payload, payloadSchema)
  return why === undefined
    ? undefined
    : `the payload does not satisfy the payloadSchema of queue ${queue}: ${why}`
}

function findChangedHeader(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
  lockedHeaders: readonly string[],
): string | undefined {
  const locked = new Set(lockedHeaders.map((name) => name.toLowerCase()))
  const isLocked = (name: string): boolean =>
    locked.has(name.toLowerCase()) || name.toLowerCase().startsWith('redrive-')
  return [...Object.keys(before), ...Object.keys(after)].find(
    (name) => isLocked(name) && ownOf(before, name) !== ownOf(after, name),
  )
}

function ownOf(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined
}
