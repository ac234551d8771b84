import type { BulkActionName } from '../letter/bulk-action.ts'

/** What a caller may do. Each endpoint requires one permission. */
export const permissions = [
  /** Letters without their content: states, times, queues and categories. */
  'letter:read',
  /** Everything that payloads and errors say: payloads, headers, metadata, error text, titles. */
  'payload:read',
  /** What redaction hides from everybody else. It is shown on request, and audited. */
  'payload:reveal',
  'payload:edit',
  'letter:capture',
  /** Retry, park, review, resolve and note letters. */
  'letter:retry',
  'letter:replay',
  'letter:archive',
  'letter:remove',
  /** Resolve, ignore, assign, merge and split groups. */
  'group:edit',
  'queue:pause',
  /** Tokens, audit log, settings, encryption keys. */
  'admin',
] as const
export type Permission = (typeof permissions)[number]

export const roles = ['viewer', 'operator', 'admin'] as const
export type Role = (typeof roles)[number]

export const permissionsOfRole: Record<Role, readonly Permission[]> = {
  viewer: ['letter:read'],
  operator: permissions.filter(
    (one) => one !== 'letter:remove' && one !== 'payload:reveal' && one !== 'admin',
  ),
  admin: permissions,
}

/** What a bulk action requires: the same as its action on one letter. */
export const permissionOfAction: Record<BulkActionName, Permission> = {
  retry: 'letter:retry',
  replay: 'letter:replay',
  resolve: 'letter:retry',
  park: 'letter:retry',
  archive: 'letter:archive',
  restore: 'letter:archive',
  remove: 'letter:remove',
  edit: 'payload:edit',
  undo: 'payload:edit',
  tag: 'letter:retry',
  priority: 'letter:retry',
}

/** The part of the store that a caller sees. Absent lists: all queues, all tenants. */
export interface Scope {
  queues?: readonly string[]
  tenants?: readonly string[]
}
