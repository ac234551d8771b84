import { z } from 'zod'
import { groupStatuses } from '../../letter/group.ts'
import { states } from '../../letter/letter.ts'
import { endpoint } from '../endpoint.ts'
import { letterId, oneOrMore, timestamp } from '../schemas/filter.ts'
import { groupDetailView, groupExplanation, groupView } from '../schemas/group.ts'
import { pageOf } from '../schemas/letter.ts'

const tag = 'Groups'
const fingerprint = z.string().min(1).max(1000).describe('A fingerprint of the group.')
const withFingerprint = z.strictObject({ fingerprint })
const name = z.string().min(1).max(200)

/** An action on a group. It returns the group after the action. */
const onGroup = {
  method: 'POST',
  tag,
  permission: 'group:edit',
  bounds: 'group',
  output: groupDetailView,
} as const

export const groupEndpoints = {
  listGroups: endpoint({
    method: 'GET',
    path: '/api/groups',
    tag,
    summary:
      'Lists groups of letters with the same cause. A page of a caller with a scope may have fewer groups than `limit`.',
    permission: 'letter:read',
    bounds: 'queues',
    input: z.strictObject({
      queue: oneOrMore(name).optional(),
      state: oneOrMore(z.enum(states)).optional().describe('Counts only letters in these states.'),
      status: oneOrMore(z.enum(groupStatuses)).optional(),
      sort: z.enum(['count', 'lastSeen', 'growth']).optional().describe('Default: count.'),
      limit: z.int().min(0).max(100).optional().describe('Default: 20.'),
      cursor: z.string().max(2000).optional().describe('The `cursor` of the page before.'),
    }),
    output: pageOf(groupView),
  }),
  getGroup: endpoint({
    method: 'GET',
    path: '/api/groups/{fingerprint}',
    tag,
    summary: 'Returns a group with its trend, what it affects, its notes and its history.',
    permission: 'letter:read',
    bounds: 'group',
    input: withFingerprint,
    output: groupDetailView,
  }),
  resolveGroup: endpoint({
    ...onGroup,
    path: '/api/groups/{fingerprint}/resolve',
    summary: 'Marks the cause as fixed. The group regresses when it is seen again.',
    input: z.strictObject({
      fingerprint,
      inVersion: name.optional().describe('The version of the application that has the fix.'),
    }),
  }),
  ignoreGroup: endpoint({
    ...onGroup,
    path: '/api/groups/{fingerprint}/ignore',
    summary: 'Ignores a group until a limit is passed. Without a limit: until it is reopened.',
    input: z.strictObject({
      fingerprint,
      until: timestamp.optional(),
      count: z.int().min(1).optional().describe('Until so many further failures.'),
      rate: z.int().min(1).optional().describe('Until so many failures in one clock hour.'),
    }),
  }),
  reopenGroup: endpoint({
    ...onGroup,
    path: '/api/groups/{fingerprint}/reopen',
    summary: 'Makes a resolved or ignored group open again.',
    input: withFingerprint,
  }),
  assignGroup: endpoint({
    ...onGroup,
    path: '/api/groups/{fingerprint}/assign',
    summary: 'Assigns a group to a person.',
    input: z.strictObject({ fingerprint, assignee: name.nullable().describe('Null: nobody.') }),
  }),
  noteGroup: endpoint({
    ...onGroup,
    path: '/api/groups/{fingerprint}/notes',
    summary: 'Adds a note to a group.',
    input: z.strictObject({ fingerprint, text: z.string().min(1).max(10_000) }),
  }),
  mergeGroups: endpoint({
    ...onGroup,
    path: '/api/groups/{fingerprint}/merge',
    summary: 'Merges other groups into this one, also for later letters.',
    input: z.strictObject({ fingerprint, others: z.array(fingerprint).min(1).max(100) }),
  }),
  splitGroup: endpoint({
    ...onGroup,
    path: '/api/groups/{fingerprint}/split',
    summary: 'Undoes the merge of this fingerprint, and returns its group.',
    input: withFingerprint,
  }),
  explainGroup: endpoint({
    method: 'GET',
    path: '/api/letters/{id}/group',
    tag,
    summary: 'Explains why a letter is in its group.',
    permission: 'payload:read',
    bounds: 'letter',
    input: z.strictObject({ id: letterId }),
    output: groupExplanation,
  }),
}
