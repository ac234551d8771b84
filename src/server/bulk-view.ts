import type { BulkActionView, BulkResultView } from '../api/schemas/bulk.ts'
import type { BulkAction, BulkResult } from '../letter/bulk-action.ts'
import { hideContentFields } from './bounds.ts'
import { mayReadContent } from './view.ts'
import { redactAny, type Viewer } from './viewer.ts'

/** A bulk action as a caller may see it. */
export function viewBulkAction(action: BulkAction, caller: Viewer): BulkActionView {
  return mayReadContent(caller) ? redactAction(action, caller) : hideBulkAction(action)
}

/** A bulk action without what comes from payloads, errors and people. */
export function hideBulkAction(action: BulkActionView): BulkActionView {
  const { preview: _, reason: __, problem: ___, ...rest } = action
  const { patch: ____, ...input } = action.input
  return {
    ...rest,
    filter: hideContentFields(action.filter),
    input,
    sample: action.sample.map((letter) => ({ ...letter, failure: '' })),
    hidden: true,
  }
}

/** What comes from letters and from people, without what is hidden from the caller. */
function redactAction(action: BulkAction, caller: Viewer): BulkActionView {
  const { filter, input, sample, preview, reason, problem, stopReason } = action
  const queueOf = new Map(sample.map(({ id, queue }) => [id, queue]))
  const reasons = Object.fromEntries(
    Object.entries({ reason, problem, stopReason }).filter(([, text]) => text !== undefined),
  )
  return {
    ...action,
    ...redactAny(reasons, caller),
    filter: redactAny(filter, caller),
    input: input.patch
      ? {
          ...input,
          patch: caller.redactions().reduce((shown, one) => one.patch(shown), input.patch),
        }
      : input,
    sample: sample.map((letter) => ({
      ...letter,
      failure: caller.redaction(letter.queue)?.text(letter.failure) ?? letter.failure,
    })),
    ...(preview
      ? {
          preview: preview.map((one) => {
            const redaction = caller.redaction(queueOf.get(one.id) ?? '')
            return redaction ? redaction.preview(one) : one
          }),
        }
      : {}),
  }
}

/** What a bulk action did to a letter, as a caller may see it. */
export function viewBulkResult(result: BulkResult, caller: Viewer): BulkResultView {
  if (mayReadContent(caller)) return redactAny(result, caller)
  const { error: _, ...rest } = result
  return { ...rest, hidden: true }
}
