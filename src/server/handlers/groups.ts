import type { groupEndpoints } from '../../api/endpoints/groups.ts'
import type { GroupDetailView } from '../../api/schemas/group.ts'
import { withoutUndefined } from '../../check/keys.ts'
import type { GroupDetail } from '../../letter/group.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { boundFilter } from '../bounds.ts'
import { findGroup } from '../check-bounds.ts'
import { viewGroup, viewGroupDetail } from '../group-view.ts'
import type { Context, Handlers } from './handler.ts'

/** A handler that acts on a group in the name of the caller, and returns the group after it. */
function onGroup<Input extends { fingerprint: string }>(
  act: (dlq: DeadLetterQueue, input: Input, by: string) => Promise<GroupDetail>,
): (input: Input, context: Context) => Promise<GroupDetailView> {
  return async (input, { dlq, caller }) =>
    viewGroupDetail(await act(dlq, input, caller.name), caller)
}

export const groupHandlers: Handlers<keyof typeof groupEndpoints> = {
  async listGroups(query, { dlq, caller }) {
    const { queues: within } = caller.scope
    const page = await dlq.groups({
      ...boundFilter(withoutUndefined(query), caller),
      ...(within ? { within } : {}),
    })
    return { ...page, items: page.items.map((group) => viewGroup(group, caller)) }
  },

  getGroup: (_, { group, caller }) => viewGroupDetail(group, caller),

  resolveGroup: onGroup((dlq, { fingerprint, ...options }, by) =>
    dlq.resolveGroup(fingerprint, by, withoutUndefined(options)),
  ),
  ignoreGroup: onGroup((dlq, { fingerprint, ...options }, by) =>
    dlq.ignoreGroup(fingerprint, by, withoutUndefined(options)),
  ),
  reopenGroup: onGroup((dlq, { fingerprint }, by) => dlq.reopenGroup(fingerprint, by)),
  assignGroup: onGroup((dlq, { fingerprint, assignee }, by) =>
    dlq.assignGroup(fingerprint, by, assignee),
  ),
  noteGroup: onGroup((dlq, { fingerprint, text }, by) => dlq.noteGroup(fingerprint, by, text)),

  async mergeGroups({ fingerprint, others }, { dlq, caller }) {
    for (const other of others) await findGroup(other, { dlq, caller })
    return viewGroupDetail(await dlq.mergeGroups(fingerprint, others, caller.name), caller)
  },

  splitGroup: onGroup((dlq, { fingerprint }, by) => dlq.splitGroup(fingerprint, by)),

  async explainGroup({ id }, { dlq, caller, letter }) {
    const explanation = await dlq.explainGroup(id)
    return caller.redaction(letter.queue)?.strings(explanation) ?? explanation
  },
}
