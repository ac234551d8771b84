import type { Endpoint } from '../api/endpoint.ts'
import { permissionOfAction } from '../api/permissions.ts'
import { RedriveError } from '../errors.ts'
import type { BulkAction, BulkActionName } from '../letter/bulk-action.ts'
import type { GroupDetail } from '../letter/group.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { checkQueue, isFilterInScope, isInScope } from './bounds.ts'
import { checkPermission } from './caller.ts'
import { denied, type DenialContext } from './denials.ts'
import type { Context } from './handlers/handler.ts'

type Input = { [key: string]: unknown }

/**
 * Rejects input outside the scope of the caller, and bulk actions without the permission for them.
 * A letter, group or bulk action outside the scope looks as if it did not exist.
 */
export async function checkBounds(
  denials: DenialContext,
  { bounds, permission }: Endpoint,
  input: Input,
  context: Context,
): Promise<void> {
  if (bounds === 'letter')
    context.letter = await findLetter(input['id'] as string, context, denials)
  if (bounds === 'group') context.group = await findGroup(input['fingerprint'] as string, context)
  if (bounds === 'action') context.action = await findAction(input['id'] as string, context)
  if (bounds === 'view')
    context.view = await context.views.findChangeable(input['id'] as string, context.caller)
  if (bounds === 'queue') checkQueue(input['queue'] as string, context.caller)
  if (permission === 'by-action') {
    const action = bounds === 'action' ? context.action.action : (input['action'] as BulkActionName)
    checkPermission(context.caller, `${denials.endpoint} for ${action}`, permissionOfAction[action])
  }
}

async function findLetter(
  id: string,
  { dlq, caller }: Context,
  denials: DenialContext,
): Promise<DeadLetter> {
  const letter = await dlq.get(id)
  if (letter && isInScope(caller.scope, letter)) return letter
  if (letter) await denied(denials, 'FORBIDDEN', 'the letter is outside the scope')
  throw new RedriveError('LETTER_NOT_FOUND', `there is no letter ${id}: check the id`)
}

export async function findGroup(
  fingerprint: string,
  { dlq, caller }: Pick<Context, 'dlq' | 'caller'>,
): Promise<GroupDetail> {
  const { queues: within } = caller.scope
  const group = await dlq.group(fingerprint, within ? { within } : {})
  if (group) return group
  throw new RedriveError(
    'GROUP_NOT_FOUND',
    `there is no group ${JSON.stringify(fingerprint.slice(0, 100))}: check the fingerprint, or list the groups`,
  )
}

async function findAction(id: string, { dlq, caller }: Context): Promise<BulkAction> {
  const action = await dlq.bulkAction(id)
  if (isFilterInScope(caller.scope, action.filter)) return action
  throw new RedriveError(
    'ACTION_NOT_FOUND',
    `there is no bulk action ${JSON.stringify(id.slice(0, 100))}: check the id, or list the actions`,
  )
}
