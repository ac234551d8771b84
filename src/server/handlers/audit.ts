import type { auditEndpoints } from '../../api/endpoints/audit.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import type { Handlers } from './handler.ts'

export const auditHandlers: Handlers<keyof typeof auditEndpoints> = {
  listAudit: (query, { dlq }) => dlq.audit(withoutUndefined(query)),

  verifyAudit({ seq, hash }, { dlq }) {
    if (seq !== undefined && hash !== undefined) return dlq.verifyAudit({ seq, hash })
    if (seq === hash) return dlq.verifyAudit()
    throw new RedriveError('INVALID_INPUT', 'give `seq` and `hash` together, as in `head`')
  },
}
