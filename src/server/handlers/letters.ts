import type { letterEndpoints } from '../../api/endpoints/letters.ts'
import type { LetterView } from '../../api/schemas/letter.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { readPatch } from '../../check/patch-payload.ts'
import { RedriveError } from '../../errors.ts'
import type { ActionOptions } from '../../admin/action-input.ts'
import type { EditInput } from '../../admin/edit-input.ts'
import type { JsonPatch } from '../../letter/json-patch.ts'
import type { DeadLetter, Json } from '../../letter/letter.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { boundFilter, isInScope } from '../bounds.ts'
import { payloadOf } from '../input.ts'
import { checkPatchProbe } from '../patch-probe.ts'
import { revealIf } from '../reveal.ts'
import { mayReadContent, viewLetter, viewPayload, viewSummary } from '../view.ts'
import type { Context, Handlers } from './handler.ts'

/** A handler that acts on a letter in the name of the caller, and returns the letter after it. */
function onLetter<Input extends { id: string }>(
  act: (
    dlq: DeadLetterQueue,
    input: Input,
    by: string,
    options: ActionOptions,
  ) => Promise<DeadLetter>,
): (input: Input, context: Context) => Promise<LetterView> {
  return async (input, { dlq, caller, ifVersion }) => {
    const options = ifVersion === undefined ? {} : { ifVersion }
    return viewLetter(await act(dlq, input, caller.name, options), caller)
  }
}

export const letterHandlers: Handlers<keyof typeof letterEndpoints> = {
  async listLetters(query, { dlq, caller }) {
    const page = await dlq.find(boundFilter(withoutUndefined(query), caller))
    return { ...page, items: page.items.map((letter) => viewSummary(letter, caller)) }
  },

  async getLetter({ reveal }, context) {
    return viewLetter(context.letter, await revealIf(reveal, context))
  },

  async getPayloads({ id, reveal }, context) {
    const redaction = (await revealIf(reveal, context)).redaction(context.letter.queue)
    const versions = await context.dlq.payloads(id)
    return versions.map(({ by, at, ...payload }) => ({
      ...viewPayload(redaction?.payload(payload) ?? payload),
      ...(by === undefined ? {} : { by }),
      ...(at === undefined ? {} : { at }),
    }))
  },

  async diffPayloads({ id, from, to, reveal }, context) {
    const redaction = (await revealIf(reveal, context)).redaction(context.letter.queue)
    return context.dlq.diff(id, from, to, redaction && ((payload) => redaction.payload(payload)))
  },

  async getLineage({ id }, { dlq, caller }) {
    const letters = await dlq.lineage(id)
    const inScope = letters.filter((one) => isInScope(caller.scope, one))
    return inScope.map((one) => ({
      ...one,
      failure: mayReadContent(caller)
        ? (caller.redaction(one.queue)?.text(one.failure) ?? one.failure)
        : '',
    }))
  },

  retryLetter: onLetter((dlq, { id, at }, by, options) =>
    dlq.retry(id, by, { ...options, ...(at === undefined ? {} : { at }) }),
  ),
  replayLetter: onLetter((dlq, { id, to }, by, options) =>
    dlq.replay(id, by, { ...options, ...(to === undefined ? {} : { to }) }),
  ),
  resolveLetter: onLetter((dlq, { id }, by, options) => dlq.resolve(id, by, options)),
  failLetter: onLetter((dlq, { id, error }, by, options) =>
    dlq.fail(id, { name: 'Error', ...error }, by, options),
  ),
  parkLetter: onLetter((dlq, { id, note }, by, options) => dlq.park(id, note, by, options)),
  reviewLetter: onLetter((dlq, { id, decision, note }, by, options) =>
    dlq.review(id, { ...options, decision, by, ...(note === undefined ? {} : { note }) }),
  ),
  noteLetter: onLetter((dlq, { id, text }, by, options) => dlq.note(id, text, by, options)),
  async editLetter({ id, ...edit }, { dlq, caller, ifVersion, letter }) {
    const options = ifVersion === undefined ? {} : { ifVersion }
    const read = editOf(edit)
    if (read.patch) checkPatchProbe(letter, readPatch(read.patch), caller)
    return viewLetter(await dlq.edit(id, { ...options, ...read, by: caller.name }), caller)
  },
  undoEdit: onLetter((dlq, { id }, by, options) => dlq.undoEdit(id, by, options)),
  archiveLetter: onLetter((dlq, { id }, by, options) => dlq.archive(id, by, options)),
  restoreLetter: onLetter((dlq, { id }, by, options) => dlq.restore(id, by, options)),
  removeLetter: onLetter((dlq, { id }, by, options) => dlq.remove(id, by, options)),
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
  const payload = payloadOf(withoutUndefined({ json, text, base64 }), 'an edit has one new payload')
  if (patch !== undefined && payload !== undefined)
    throw new RedriveError('INVALID_INPUT', 'an edit has one new payload, got patch and another')
  const edit = withoutUndefined(rest) as Omit<EditInput, 'by'>
  if (patch !== undefined) return { ...edit, patch: patch as JsonPatch }
  return payload === undefined ? edit : { ...edit, payload }
}
