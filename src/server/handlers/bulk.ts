import type { bulkEndpoints } from '../../api/endpoints/bulk.ts'
import type { BulkActionView } from '../../api/schemas/bulk.ts'
import { withoutUndefined } from '../../check/keys.ts'
import type { BulkAction } from '../../letter/bulk-action.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { boundFilter, isFilterInScope } from '../bounds.ts'
import { viewBulkAction, viewBulkResult } from '../bulk-view.ts'
import { checkBulkPatchProbe } from '../patch-probe.ts'
import type { Context, Handlers } from './handler.ts'

/** A handler that changes a bulk action, and returns the action after it. */
function onAction(
  act: (dlq: DeadLetterQueue, id: string, by: string) => Promise<BulkAction>,
): (input: { id: string }, context: Context) => Promise<BulkActionView> {
  return async ({ id }, { dlq, caller }) => viewBulkAction(await act(dlq, id, caller.name), caller)
}

export const bulkHandlers: Handlers<keyof typeof bulkEndpoints> = {
  async planBulkAction({ action, filter, ...options }, { dlq, caller }) {
    const bounded = boundFilter(withoutUndefined(filter), caller)
    checkBulkPatchProbe(options.patch, caller.redactions(), caller)
    const plan = await dlq.plan(action, bounded, { ...options, by: caller.name })
    return viewBulkAction(plan, caller)
  },

  async planBulkUndo({ id, ...options }, { dlq, caller }) {
    return viewBulkAction(await dlq.planUndo(id, { ...options, by: caller.name }), caller)
  },

  async listBulkActions({ limit }, { dlq, caller }) {
    const actions = await dlq.bulkActions(limit, ({ filter }) =>
      isFilterInScope(caller.scope, filter),
    )
    return actions.map((action) => viewBulkAction(action, caller))
  },

  getBulkAction: (_, { action, caller }) => viewBulkAction(action, caller),

  async getBulkResults({ id, ...query }, { dlq, caller }) {
    const page = await dlq.results(id, withoutUndefined(query))
    return { ...page, items: page.items.map((result) => viewBulkResult(result, caller)) }
  },

  approveBulkAction: onAction((dlq, id, by) => dlq.approve(id, by)),
  runBulkAction: onAction((dlq, id, by) => dlq.run(id, by)),
  pauseBulkAction: onAction((dlq, id, by) => dlq.pause(id, by)),
  resumeBulkAction: onAction((dlq, id, by) => dlq.resume(id, by)),
  cancelBulkAction: onAction((dlq, id, by) => dlq.cancel(id, by)),
}
