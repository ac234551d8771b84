import { z } from 'zod'
import { priorities } from '../../letter/letter.ts'
import { orders } from '../../letter/query.ts'
import { endpoint } from '../endpoint.ts'
import { errorInput } from '../schemas/capture.ts'
import { filterShape, letterId, reveal, timestamp } from '../schemas/filter.ts'
import {
  anyJson,
  letterView,
  lineageLetter,
  pageOf,
  payloadDiff,
  payloadVersion,
  summaryView,
} from '../schemas/letter.ts'

const tag = 'Letters'
const id = letterId
const note = z.string().min(1).max(4000)
const withId = z.strictObject({ id })
const withReveal = z.strictObject({ id, reveal })
const patchOperation = z.looseObject({ op: z.string(), path: z.string() })

/** An action on one letter. It returns the letter after the action. */
const onLetter = { method: 'POST', tag, bounds: 'letter', output: letterView } as const

export const letterEndpoints = {
  listLetters: endpoint({
    method: 'GET',
    path: '/api/letters',
    tag,
    summary: 'Lists letters, a page at a time.',
    permission: 'letter:read',
    bounds: 'filter',
    input: z.strictObject({
      ...filterShape,
      order: z.enum(orders).optional().describe('Default: newest.'),
      limit: z.int().min(0).max(1000).optional().describe('Default: 50.'),
      cursor: z.string().max(2000).optional().describe('The `cursor` of the page before.'),
      partial: z
        .boolean()
        .optional()
        .describe(
          'True: a search that reads many letters ends early. The page then has fewer letters than `limit`, perhaps none, and a `cursor` that continues the search.',
        ),
    }),
    output: pageOf(summaryView),
  }),
  getLetter: endpoint({
    method: 'GET',
    path: '/api/letters/{id}',
    tag,
    summary: 'Returns a letter with its payload and its history.',
    permission: 'letter:read',
    bounds: 'letter',
    input: withReveal,
    output: letterView,
  }),
  getPayloads: endpoint({
    method: 'GET',
    path: '/api/letters/{id}/payloads',
    tag,
    summary: 'Returns the stored versions of the payload, the oldest first.',
    permission: 'payload:read',
    bounds: 'letter',
    input: withReveal,
    output: z.array(payloadVersion),
  }),
  diffPayloads: endpoint({
    method: 'GET',
    path: '/api/letters/{id}/diff',
    tag,
    summary: 'Returns what changed between two versions of the payload.',
    permission: 'payload:read',
    bounds: 'letter',
    input: z.strictObject({
      id,
      from: z.int().positive().optional().describe('Default: the version as captured.'),
      to: z.int().positive().optional().describe('Default: the current version.'),
      reveal,
    }),
    output: payloadDiff,
  }),
  getLineage: endpoint({
    method: 'GET',
    path: '/api/letters/{id}/lineage',
    tag,
    summary: 'Lists the letters of one message: each but the first is a replay that failed again.',
    permission: 'letter:read',
    bounds: 'letter',
    input: withId,
    output: z.array(lineageLetter),
  }),
  retryLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/retry',
    summary: 'Makes a letter due now, or at a time.',
    permission: 'letter:retry',
    input: z.strictObject({ id, at: timestamp.optional() }),
  }),
  replayLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/replay',
    summary: 'Publishes a letter to its source again, or to another mailbox.',
    permission: 'letter:replay',
    input: z.strictObject({ id, to: z.string().min(1).max(1000).optional() }),
  }),
  resolveLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/resolve',
    summary: 'Settles a letter as done.',
    permission: 'letter:retry',
    input: withId,
  }),
  failLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/fail',
    summary: 'Reports a failed run that happened elsewhere. It counts like a run of a handler.',
    permission: 'letter:retry',
    input: z.strictObject({ id, error: errorInput }),
  }),
  parkLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/park',
    summary: 'Sets a letter aside for a person.',
    permission: 'letter:retry',
    input: z.strictObject({ id, note: note.optional() }),
  }),
  reviewLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/review',
    summary: 'Decides what happens to a parked letter.',
    permission: 'letter:retry',
    input: z.strictObject({
      id,
      decision: z.enum(['requeue', 'resolve', 'discard']),
      note: note.optional(),
    }),
  }),
  noteLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/notes',
    summary: 'Adds a note to the history of a letter.',
    permission: 'letter:retry',
    input: z.strictObject({ id, text: note }),
  }),
  editLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/edit',
    summary: 'Changes the payload, the headers or other fields of a letter.',
    permission: 'payload:edit',
    input: z.strictObject({
      id,
      json: anyJson.optional().describe('The new payload, as a JSON value.'),
      text: z.string().optional().describe('The new payload, as text with `contentType`.'),
      base64: z.base64().optional().describe('The new payload, as bytes with `contentType`.'),
      patch: z.array(patchOperation).optional().describe('A JSON Patch (RFC 6902) of the payload.'),
      contentType: z.string().min(1).max(200).optional(),
      headers: z.record(z.string(), z.string()).optional(),
      priority: z.enum(priorities).optional(),
      tags: z.array(z.string()).optional(),
      metadata: z.record(z.string(), anyJson).optional(),
      reason: z.string().min(1).max(1000),
    }),
  }),
  undoEdit: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/undo',
    summary: 'Undoes the newest edit of a letter.',
    permission: 'payload:edit',
    input: withId,
  }),
  archiveLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/archive',
    summary: 'Hides a letter from lists.',
    permission: 'letter:archive',
    input: withId,
  }),
  restoreLetter: endpoint({
    ...onLetter,
    path: '/api/letters/{id}/restore',
    summary: 'Undoes the archiving of a letter.',
    permission: 'letter:archive',
    input: withId,
  }),
  removeLetter: endpoint({
    ...onLetter,
    method: 'DELETE',
    path: '/api/letters/{id}',
    summary: 'Removes a letter permanently, and returns it.',
    permission: 'letter:remove',
    input: withId,
  }),
}
