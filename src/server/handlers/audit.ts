import type { AuditEntryView, auditEndpoints } from '../../api/endpoints/audit.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import type { AuditEntry } from '../../letter/audit.ts'
import { toLine } from '../lines.ts'
import { revealIf } from '../reveal.ts'
import { mayReadContent } from '../view.ts'
import { redactAny, type Viewer } from '../viewer.ts'
import type { Handlers } from './handler.ts'

export const auditHandlers: Handlers<keyof typeof auditEndpoints> = {
  async listAudit(query, { dlq, caller }) {
    const page = await dlq.audit(withoutUndefined(query))
    return { ...page, items: page.items.map((entry) => viewEntry(entry, caller)) }
  },

  async *exportAudit({ reveal }, context) {
    const viewer = await revealIf(reveal, context, { kind: 'store', id: 'audit log' })
    const isChanged = viewer.redactions().length > 0 || !mayReadContent(viewer)
    for await (const line of context.dlq.exportAudit()) {
      if (context.signal.aborted) return
      yield isChanged ? toLine(viewEntry(JSON.parse(line) as AuditEntry, viewer)) : line
    }
  },

  async pruneAudit({ before, reason }, { dlq, caller }) {
    return { removed: await dlq.pruneAudit({ before, by: caller.name, reason }) }
  },

  verifyAudit({ seq, hash }, { dlq }) {
    if (seq !== undefined && hash !== undefined) return dlq.verifyAudit({ seq, hash })
    if (seq === hash) return dlq.verifyAudit()
    throw new RedriveError('INVALID_INPUT', 'give `seq` and `hash` together, as in `head`')
  },
}

/** An entry as a caller may see it. Who did it, the hashes and the ids stay. */
function viewEntry(entry: AuditEntry, viewer: Viewer): AuditEntryView {
  return mayReadContent(viewer) ? redactEntry(entry, viewer) : hideEntry(entry)
}

/** People quote letters in reasons and filters. The reason of a denial is that of the server. */
function hideEntry(entry: AuditEntry): AuditEntryView {
  const { reason, before: _, after: __, what, ...rest } = entry
  return {
    ...rest,
    what: what.kind === 'letters' ? { ...what, id: '' } : what,
    ...(reason !== undefined && entry.outcome === 'denied' ? { reason } : {}),
    hidden: true,
  }
}

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
