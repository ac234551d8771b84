import type { AuditSubject } from '../letter/audit.ts'
import { checkPermission } from './caller.ts'
import type { Context } from './handlers/handler.ts'
import { withoutRedaction, type Viewer } from './viewer.ts'

/**
 * The caller as it reads this response: redacted, unless it asks for everything. That needs a
 * permission, and the audit log says so before anything is shown. `what` defaults to the letter.
 */
export async function revealIf(
  reveal: boolean | undefined,
  { dlq, caller, letter }: Context,
  what?: AuditSubject,
): Promise<Viewer> {
  if (!reveal) return caller
  checkPermission(caller, 'reveal', 'payload:reveal')
  await dlq.recordReveal(what ?? { kind: 'letter', id: letter.id }, caller.name)
  return withoutRedaction(caller)
}
