import { actAs } from '../admin/audit/caller.ts'
import type { EndpointName } from '../api/endpoints.ts'
import { hasCode } from '../errors.ts'
import type { AuditSubject } from '../letter/audit.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import type { Viewer } from './viewer.ts'

/** Records calls of one request that are denied. */
export interface DenialContext {
  dlq: DeadLetterQueue
  endpoint: EndpointName
  /** Absent: not known, or not yet. */
  caller?: Viewer | undefined
  /** The parameters of the path, not yet checked. */
  params: { [key: string]: string }
}

/** Performs a call in the name of its sender. If it is denied, the audit log says so. */
export function recordDenial<T>(context: DenialContext, call: () => T | Promise<T>): Promise<T> {
  const { caller } = context
  return actAs({ via: 'http', ...(caller ? { actor: caller.name } : {}) }, async () => {
    try {
      return await call()
    } catch (error) {
      const isDenied = hasCode(error, 'UNAUTHENTICATED', 'FORBIDDEN')
      // Callers that are known may send too much without doing wrong.
      const isGuess = hasCode(error, 'TOO_MANY_REQUESTS') && !context.caller
      if (isDenied || isGuess) await denied(context, error.code, error.message)
      throw error
    }
  })
}

/** Records a denied call. */
export function denied(
  { dlq, endpoint, caller, params }: DenialContext,
  code: string,
  reason: string,
): Promise<void> {
  const what = subjectOf(params)
  return dlq.recordDenied({
    endpoint,
    ...(endpoint === 'createSession' ? { action: 'sign-in' } : {}),
    code,
    reason,
    ...(caller ? { actor: caller.name } : {}),
    ...(what ? { what } : {}),
  })
}

/** The letter or the queue that the path of a request names. */
function subjectOf({ id, queue }: { [key: string]: string }): AuditSubject | undefined {
  if (queue !== undefined) return { kind: 'queue', id: queue }
  return id === undefined ? undefined : { kind: 'letter', id }
}
