import type { Endpoint } from '../api/endpoint.ts'
import { permissionOfAction, type Permission, type Role, type Scope } from '../api/permissions.ts'
import { RedriveError } from '../errors.ts'

/** Who sends a request, and what the sender may do. */
export interface Caller {
  /** The name in the history of letters and in the audit log. */
  name: string
  role?: Role
  permissions: ReadonlySet<Permission>
  scope: Scope
}

/** Rejects a caller that may not use an endpoint. Everything that is not allowed is denied. */
export function checkAccess(caller: Caller | undefined, name: string, endpoint: Endpoint): void {
  const { permission, bounds, tag } = endpoint
  if (permission === 'public') return
  if (!caller)
    throw new RedriveError(
      'UNAUTHENTICATED',
      'the request has no valid token or session: sign in, or send the header Authorization: Bearer TOKEN',
    )
  if (permission === 'by-action') checkSomePermission(caller, name)
  else if (permission !== 'any') checkPermission(caller, name, permission)
  if (bounds === 'all' && isScoped(caller.scope))
    throw new RedriveError(
      'FORBIDDEN',
      `${caller.name} may not call ${name}: it is about all queues and tenants, and the token is limited to some`,
    )
  if (tenantless.has(bounds) && caller.scope.tenants !== undefined)
    throw new RedriveError(
      'FORBIDDEN',
      `${caller.name} may not call ${name}: it is about whole queues, and the token is limited to the tenants ${caller.scope.tenants.join(', ')}${tag === 'Groups' ? '; list the letters of a group with `group=FINGERPRINT` instead' : ''}`,
    )
}

/** What belongs to whole queues. */
const tenantless: ReadonlySet<Endpoint['bounds']> = new Set(['queue', 'queues', 'group'])

export function checkPermission(caller: Caller, name: string, permission: Permission): void {
  if (caller.permissions.has(permission)) return
  throw new RedriveError(
    'FORBIDDEN',
    `${caller.name} may not call ${name}: it needs the permission ${permission}`,
  )
}

/** Rejects a caller that may not make any bulk action, before anything is read. */
function checkSomePermission({ name: caller, permissions }: Caller, name: string): void {
  const some = [...new Set(Object.values(permissionOfAction))]
  if (some.some((permission) => permissions.has(permission))) return
  throw new RedriveError(
    'FORBIDDEN',
    `${caller} may not call ${name}: it needs the permission of the bulk action, one of ${some.join(', ')}`,
  )
}

/** Whether two callers have the same rights. */
export function isSameCaller(one: Caller | undefined, other: Caller | undefined): boolean {
  const rightsOf = ({ name, permissions, scope }: Caller): string =>
    JSON.stringify([name, [...permissions], scope])
  return one !== undefined && other !== undefined && rightsOf(one) === rightsOf(other)
}

function isScoped({ queues, tenants }: Scope): boolean {
  return queues !== undefined || tenants !== undefined
}
