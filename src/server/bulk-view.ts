import type { BulkActionView, BulkResultView } from '../api/schemas/bulk.ts'
import type { BulkAction, BulkResult } from '../letter/bulk-action.ts'
import { hideContentFields } from './bounds.ts'
import type { Caller } from './caller.ts'
import { mayReadContent } from './view.ts'

/** A bulk action as a caller may see it. */
export function viewBulkAction(action: BulkAction, caller: Caller): BulkActionView {
  if (mayReadContent(caller)) return action
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

/** What a bulk action did to a letter, as a caller may see it. */
export function viewBulkResult(result: BulkResult, caller: Caller): BulkResultView {
  if (mayReadContent(caller)) return result
  const { error: _, ...rest } = result
  return { ...rest, hidden: true }
}
