import type { letterEndpoints } from '../../api/endpoints/letters.ts'
import type { LetterView } from '../../api/schemas/letter.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import type { EditInput } from '../../admin/edit-input.ts'
import type { JsonPatch } from '../../letter/json-patch.ts'
import type { DeadLetter, Json } from '../../letter/letter.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { boundFilter, isInScope } from '../bounds.ts'
import { mayReadContent, viewLetter, viewPayload, viewSummary } from '../view.ts'
import type { Context, Handlers } from './handler.ts'

/** A handler that acts on a letter in the name of the caller, and returns the letter after it. */
function onLetter<Input extends { id: string }>(
  act: (dlq: DeadLetterQueue, input: Input, by: string) => Promise<DeadLetter>,
): (input: Input, context: Context) => Promise<LetterView> {
  return async (input, { dlq, caller }) => viewLetter(await act(dlq, input, caller.name), caller)
}

export const letterHandlers: Handlers<keyof typeof letterEndpoints> = {
  async listLetters(query, { dlq, caller }) {
    const page = await dlq.find(boundFilter(withoutUndefined(query), caller))
    return { ...page, items: page.items.map((letter) => viewSummary(letter, caller)) }
  },

  getLetter: (_, { letter, caller }) => viewLetter(letter, caller),

  async getPayloads({ id }, { dlq }) {
    const versions = await dlq.payloads(id)
    return versions.map(({ by, at, ...payload }) => ({
      ...viewPayload(payload),
      ...(by === undefined ? {} : { by }),
      ...(at === undefined ? {} : { at }),
    }))
  },

  diffPayloads: ({ id, from, to }, { dlq }) => dlq.diff(id, from, to),

  async getLineage({ id }, { dlq, caller }) {
    const letters = await dlq.lineage(id)
    const inScope = letters.filter((one) => isInScope(caller.scope, one))
    return mayReadContent(caller) ? inScope : inScope.map((one) => ({ ...one, failure: '' }))
  },

  retryLetter: onLetter((dlq, { id, at }, by) => dlq.retry(id, by, at === undefined ? {} : { at })),
  replayLetter: onLetter((dlq, { id, to }, by) =>
    dlq.replay(id, by, to === undefined ? {} : { to }),
  ),
  resolveLetter: onLetter((dlq, { id }, by) => dlq.resolve(id, by)),
  parkLetter: onLetter((dlq, { id, note }, by) => dlq.park(id, note, by)),
  reviewLetter: onLetter((dlq, { id, decision, note }, by) =>
    dlq.review(id, { decision, by, ...(note === undefined ? {} : { note }) }),
  ),
  noteLetter: onLetter((dlq, { id, text }, by) => dlq.note(id, text, by)),
  editLetter: onLetter((dlq, { id, ...edit }, by) => dlq.edit(id, { ...editOf(edit), by })),
  undoEdit: onLetter((dlq, { id }, by) => dlq.undoEdit(id, by)),
  archiveLetter: onLetter((dlq, { id }, by) => dlq.archive(id, by)),
  restoreLetter: onLetter((dlq, { id }, by) => dlq.restore(id, by)),
  removeLetter: onLetter((dlq, { id }, by) => dlq.remove(id, by)),
}

interface EditBody {
  json?: Json | undefined
  text?: string | undefined
  base64?: string | undefined
  patch?: unknown
  contentType?: string | undefined
  reason: string
}

function editOf({ json, text, base64, patch, ...rest }: EditBody): Omit<EditInput, 'by'> {
  const given = Object.entries({ json, text, base64, patch }).filter(
    ([, value]) => value !== undefined,
  )
  if (given.length > 1)
    throw new RedriveError(
      'INVALID_INPUT',
      `an edit has one new payload, got ${given.map(([name]) => name).join(' and ')}`,
    )
  const edit = withoutUndefined(rest) as Omit<EditInput, 'by'>
  if (patch !== undefined) return { ...edit, patch: patch as JsonPatch }
  if (base64 !== undefined) return { ...edit, payload: Buffer.from(base64, 'base64') }
  if (text !== undefined) return { ...edit, payload: text }
  return json === undefined ? edit : { ...edit, payload: json }
}
