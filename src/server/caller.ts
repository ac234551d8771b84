import type { Endpoint } from '../api/endpoint.ts'
import type { Permission, Role, Scope } from '../api/permissions.ts'
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
  const { permission, bounds } = endpoint
  if (permission === 'public') return
  if (!caller)
    throw new RedriveError(
      'UNAUTHENTICATED',
      'the request has no valid token: send the header Authorization: Bearer TOKEN',
    )
  if (permission !== 'any' && !caller.permissions.has(permission))
    throw new RedriveError(
      'FORBIDDEN',
      `${caller.name} may not call ${name}: it needs the permission ${permission}`,
    )
  if (bounds === 'all' && isScoped(caller.scope))
    throw new RedriveError(
      'FORBIDDEN',
      `${caller.name} may not call ${name}: it is about all queues and tenants, and the token is limited to some`,
    )
}

function isScoped({ queues, tenants }: Scope): boolean {
  return queues !== undefined || tenants !== undefined
}
