import { z } from 'zod'
import {
  auditActions,
  auditOutcomes,
  auditSubjects,
  auditWays,
  type AuditEntry,
  type AuditReport,
} from '../../letter/audit.ts'
import { endpoint, streamEndpoint } from '../endpoint.ts'
import { reveal, timestamp } from '../schemas/filter.ts'
import { anyJson, pageOf } from '../schemas/letter.ts'

const tag = 'Audit'
const seq = z.int().positive()
const hash = z.string().describe('A SHA-256 in hexadecimal digits.')
const text = z.string().min(1).max(1000)
const details = z.record(z.string(), anyJson)

/** An entry as a caller may see it. */
export type AuditEntryView = AuditEntry & { hidden?: true }

const auditEntry: z.core.$ZodType<AuditEntryView> = z.strictObject({
  seq,
  id: z.string(),
  at: timestamp,
  actor: z.string(),
  via: z.enum(auditWays),
  action: z.enum(auditActions),
  what: z.strictObject({ kind: z.enum(auditSubjects), id: z.string() }),
  endpoint: z.string().exactOptional().describe('The endpoint of a denied call.'),
  reason: z.string().exactOptional(),
  outcome: z.enum(auditOutcomes).describe('`started` is written before the action.'),
  code: z.string().exactOptional().describe('The error code, if it failed or was denied.'),
  startSeq: seq.exactOptional().describe('The entry that was written before the action.'),
  repeats: z.int().exactOptional().describe('Equal attempts without an entry of their own.'),
  before: details.exactOptional(),
  after: details.exactOptional(),
  prevHash: hash,
  hash,
  hidden: z
    .literal(true)
    .exactOptional()
    .describe('The caller may not read content: reasons, filters and details are left out.'),
})

const position = z.strictObject({ seq: z.int().nonnegative(), hash })

const auditReport: z.core.$ZodType<AuditReport> = z.strictObject({
  ok: z.boolean(),
  entries: z.int().nonnegative(),
  head: position.describe('The last entry. Keep it elsewhere, and give it to a later check.'),
  pruned: position.exactOptional().describe('The last entry that was removed by a prune.'),
  unfinished: z.array(seq).describe('Actions without an outcome.'),
  firstBad: z.int().exactOptional().describe('The first entry that is wrong or missing.'),
  why: z.string().exactOptional(),
})

export const auditEndpoints = {
  listAudit: endpoint({
    method: 'GET',
    path: '/api/audit',
    tag,
    summary: 'Lists entries of the audit log, a page at a time.',
    permission: 'admin',
    bounds: 'all',
    input: z.strictObject({
      actor: text.optional(),
      action: z.union([z.enum(auditActions), z.array(z.enum(auditActions))]).optional(),
      outcome: z.union([z.enum(auditOutcomes), z.array(z.enum(auditOutcomes))]).optional(),
      what: text.optional().describe('The id of a letter, a group, a queue or something else.'),
      since: timestamp.optional(),
      until: timestamp.optional(),
      order: z.enum(['newest', 'oldest']).optional().describe('Default: newest.'),
      limit: z.int().min(1).max(1000).optional().describe('Default: 100.'),
      cursor: z.string().max(12).optional().describe('The `cursor` of the page before.'),
    }),
    output: pageOf(auditEntry),
  }),
  exportAudit: streamEndpoint({
    method: 'GET',
    path: '/api/audit/export',
    tag,
    summary: 'Exports the audit log, the oldest entry first.',
    permission: 'admin',
    bounds: 'all',
    input: z.strictObject({
      reveal: reveal.describe(
        'True: also what redaction hides, so that the hashes match. It needs the permission payload:reveal, and is audited.',
      ),
    }),
    output: auditEntry,
    stream: 'lines',
  }),
  pruneAudit: endpoint({
    method: 'POST',
    path: '/api/audit/prune',
    tag,
    summary: 'Removes old entries of the audit log. The rest can still be verified.',
    permission: 'admin',
    bounds: 'all',
    input: z.strictObject({
      before: timestamp.describe('Entries before this time are removed. At least one day ago.'),
      reason: text,
    }),
    output: z.strictObject({ removed: z.int().nonnegative() }),
  }),
  verifyAudit: endpoint({
    method: 'GET',
    path: '/api/audit/verify',
    tag,
    summary: 'Reads the whole audit log and checks its hashes.',
    permission: 'admin',
    bounds: 'all',
    input: z.strictObject({
      seq: seq.optional().describe('With `hash`: the `head` of an earlier check.'),
      hash: hash.optional(),
    }),
    output: auditReport,
  }),
}
