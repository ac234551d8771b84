import { createHash } from 'node:crypto'
import type { AuditEntry, AuditPosition } from '../../letter/audit.ts'
import { toCanonicalJson } from '../../letter/canonical-json.ts'

/** An entry before it has its place in the chain. */
export type AuditDraft = Omit<AuditEntry, 'seq' | 'prevHash' | 'hash'>

/** The position before the first entry. */
export const genesis: AuditPosition = { seq: 0, hash: '0'.repeat(64) }

/** Gives drafts their places after this position. */
export function link(after: AuditPosition, drafts: readonly AuditDraft[]): AuditEntry[] {
  let { seq, hash } = after
  return drafts.map((draft) => {
    const unsigned = { ...draft, seq: seq + 1, prevHash: hash }
    ;({ seq, hash } = { seq: unsigned.seq, hash: hashOf(unsigned) })
    return { ...unsigned, hash }
  })
}

/** Why a stored entry cannot be the one after this position. Undefined: it is. */
export function whyBroken(after: AuditPosition, entry: AuditEntry): string | undefined {
  const seq = after.seq + 1
  if (entry.seq !== seq) return `entry ${seq} is missing: its place has entry ${entry.seq}`
  const { hash, ...unsigned } = entry
  if (hashOf(unsigned) !== hash) return `entry ${seq} was changed: its hash does not match`
  if (entry.prevHash !== after.hash)
    return `entry ${seq} does not follow the stored entry ${after.seq}: one of them was replaced`
  return undefined
}

function hashOf(entry: Omit<AuditEntry, 'hash'>): string {
  return createHash('sha256').update(toCanonicalJson(entry)).digest('hex')
}
