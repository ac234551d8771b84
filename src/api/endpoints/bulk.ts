import { z } from 'zod'
import { filterActionNames, outcomes } from '../../letter/bulk-action.ts'
import { endpoint } from '../endpoint.ts'
import {
  bulkActionView,
  bulkInputShape,
  bulkResultView,
  canaryInput,
  timeWindow,
} from '../schemas/bulk.ts'
import { filterSchema, oneOrMore, timestamp } from '../schemas/filter.ts'
import { pageOf } from '../schemas/letter.ts'

const tag = 'Bulk actions'
const id = z.string().min(1).max(200).describe('The id of a bulk action.')
const withId = z.strictObject({ id })

/** Why, how fast and when an action runs. */
const limitShape = {
  reason: z
    .string()
    .min(1)
    .max(1000)
    .exactOptional()
    .describe('Required for remove, resolve, edit and undo.'),
  rate: z.number().positive().exactOptional().describe('Letters per second.'),
  concurrency: z
    .int()
    .positive()
    .exactOptional()
    .describe('Letters that may wait for their outcome at the same time.'),
  startAt: timestamp.exactOptional(),
  window: timeWindow.exactOptional().describe('Only during this time of day.'),
  canary: z
    .union([z.boolean(), canaryInput])
    .exactOptional()
    .describe('Acts on few letters first, and stops when too many fail.'),
  expiresInMs: z
    .int()
    .positive()
    .exactOptional()
    .describe('How long the plan can be run. Default: 1 hour.'),
}

/** A change of a bulk action. It returns the action after the change. */
const onAction = {
  method: 'POST',
  tag,
  permission: 'by-action',
  bounds: 'action',
  input: withId,
  output: bulkActionView,
} as const

export const bulkEndpoints = {
  planBulkAction: endpoint({
    method: 'POST',
    path: '/api/bulk-actions',
    tag,
    summary: 'Plans an action on all letters that match now, and changes no letter.',
    permission: 'by-action',
    bounds: 'filter',
    status: 201,
    input: z.strictObject({
      action: z.enum(filterActionNames),
      filter: filterSchema,
      ...limitShape,
      ...bulkInputShape,
    }),
    output: bulkActionView,
  }),
  planBulkUndo: endpoint({
    method: 'POST',
    path: '/api/bulk-actions/{id}/undo',
    tag,
    summary: 'Plans to restore the payloads that an edit has changed, and changes no letter.',
    permission: 'payload:edit',
    bounds: 'action',
    status: 201,
    input: z.strictObject({ id, ...limitShape }),
    output: bulkActionView,
  }),
  listBulkActions: endpoint({
    method: 'GET',
    path: '/api/bulk-actions',
    tag,
    summary: 'Lists the latest bulk actions, the newest first.',
    permission: 'letter:read',
    bounds: 'filter',
    input: z.strictObject({ limit: z.int().min(0).max(1000).default(20) }),
    output: z.array(bulkActionView),
  }),
  getBulkAction: endpoint({
    method: 'GET',
    path: '/api/bulk-actions/{id}',
    tag,
    summary: 'Returns a bulk action with its progress.',
    permission: 'letter:read',
    bounds: 'action',
    input: withId,
    output: bulkActionView,
  }),
  getBulkResults: endpoint({
    method: 'GET',
    path: '/api/bulk-actions/{id}/results',
    tag,
    summary: 'Lists what a bulk action did to each letter, a page at a time.',
    permission: 'letter:read',
    bounds: 'action',
    input: z.strictObject({
      id,
      outcome: oneOrMore(z.enum(outcomes)).optional(),
      limit: z.int().min(1).max(1000).optional().describe('Default: 100.'),
      cursor: z.string().max(2000).optional().describe('The `cursor` of the page before.'),
    }),
    output: pageOf(bulkResultView),
  }),
  approveBulkAction: endpoint({
    ...onAction,
    path: '/api/bulk-actions/{id}/approve',
    summary: 'Approves a plan of another person.',
  }),
  runBulkAction: endpoint({
    ...onAction,
    path: '/api/bulk-actions/{id}/run',
    summary: 'Starts a planned action. Workers on the store run it.',
    status: 202,
  }),
  pauseBulkAction: endpoint({
    ...onAction,
    path: '/api/bulk-actions/{id}/pause',
    summary: 'Acts on no further letters until the action is resumed.',
  }),
  resumeBulkAction: endpoint({
    ...onAction,
    path: '/api/bulk-actions/{id}/resume',
    summary: 'Continues an action that was paused, or that its canary stopped.',
    status: 202,
  }),
  cancelBulkAction: endpoint({
    ...onAction,
    path: '/api/bulk-actions/{id}/cancel',
    summary: 'Ends an action for good. What it has done stays done.',
  }),
}
