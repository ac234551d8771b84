import type { auditEndpoints } from '../../api/endpoints/audit.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import type { AuditEntry } from '../../letter/audit.ts'
import { redactAny, type Viewer } from '../viewer.ts'
import type { Handlers } from './handler.ts'

export const auditHandlers: Handlers<keyof typeof auditEndpoints> = {
  async listAudit(query, { dlq, caller }) {
    const page = await dlq.audit(withoutUndefined(query))
    return { ...page, items: page.items.map((entry) => redactEntry(entry, caller)) }
  },

  verifyAudit({ seq, hash }, { dlq }) {
    if (seq !== undefined && hash !== undefined) return dlq.verifyAudit({ seq, hash })
    if (seq === hash) return dlq.verifyAudit()
    throw new RedriveError('INVALID_INPUT', 'give `seq` and `hash` together, as in `head`')
  },
}

/** Who did it, the hashes and the ids stay. */
function redactEntry(entry: AuditEntry, viewer: Viewer): AuditEntry {
  const { what, reason, before, after } = entry
  return {
    ...entry,
    what: what.kind === 'letters' ? redactAny(what, viewer) : what,
    ...(reason === undefined ? {} : { reason: redactAny(reason, viewer) }),
    ...(before ? { before: redactAny(before, viewer) } : {}),
    ...(after ? { after: redactAny(after, viewer) } : {}),
  }
}
