import { z } from 'zod'
import { endpoint } from '../endpoint.ts'
import { savedView, savedViewShape } from '../schemas/saved-view.ts'

const tag = 'Saved views'
const id = z.string().min(1).max(200).describe('The id of a saved view.')

export const viewEndpoints = {
  listViews: endpoint({
    method: 'GET',
    path: '/api/views',
    tag,
    summary:
      'Lists the saved views of the caller, and those that others share. A caller with a scope sees the ones that name only its queues and tenants.',
    permission: 'letter:read',
    bounds: 'filter',
    input: z.strictObject({}),
    output: z.array(savedView),
  }),
  createView: endpoint({
    method: 'POST',
    path: '/api/views',
    tag,
    summary: 'Saves a filter under a name.',
    permission: 'letter:read',
    bounds: 'none',
    status: 201,
    input: z.strictObject(savedViewShape),
    output: savedView,
  }),
  replaceView: endpoint({
    method: 'PUT',
    path: '/api/views/{id}',
    tag,
    summary: 'Replaces a saved view of the caller. An admin may replace every shared view.',
    permission: 'letter:read',
    bounds: 'view',
    input: z.strictObject({ id, ...savedViewShape }),
    output: savedView,
  }),
  removeView: endpoint({
    method: 'DELETE',
    path: '/api/views/{id}',
    tag,
    summary: 'Removes a saved view of the caller. An admin may remove every shared view.',
    permission: 'letter:read',
    bounds: 'view',
    input: z.strictObject({ id }),
    output: savedView,
  }),
}
