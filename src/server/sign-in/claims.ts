import { permissionsOfRole, roles, type Role } from '../../api/permissions.ts'
import type { ClaimMapping } from '../../config/server.ts'
import { RedriveError } from '../../errors.ts'
import type { Caller } from '../caller.ts'

/** What an identity provider says about somebody. */
export type Claims = Readonly<Record<string, unknown>>

const maxName = 200
const maxNames = 1000

/**
 * The caller with these claims. Rejects one whose claims give no role: who is known is not allowed
 * anything yet. `nameClaim` is the claim with the name, unless the mapping names another one.
 */
export function callerFromClaims(claims: Claims, mapping: ClaimMapping, nameClaim: string): Caller {
  const { name: ownName, role: roleClaim = 'role', queues, tenants } = mapping.claims ?? {}
  const name = claimOf(claims, ownName ?? nameClaim)
  if (typeof name !== 'string' || name === '' || name.length > maxName)
    throw new RedriveError(
      'FORBIDDEN',
      `the claim ${ownName ?? nameClaim} must be a name of 1 to ${maxName} characters: check server.*.claims.name and the identity provider`,
    )
  const role = roleOf(claimOf(claims, roleClaim), mapping.roles)
  if (!role)
    throw new RedriveError(
      'FORBIDDEN',
      `${name} has no role in Redrive: the claim ${roleClaim} of the identity provider has no value that gives one`,
    )
  return {
    name,
    role,
    permissions: new Set(permissionsOfRole[role]),
    scope: {
      ...(queues === undefined ? {} : scopeOf('queues', queues, claims, name)),
      ...(tenants === undefined ? {} : scopeOf('tenants', tenants, claims, name)),
    },
  }
}

/** The claim with this name, or at this path of names. Names may have dots themselves. */
export function claimOf(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Claims)[name]
  }
  return value
}

/** The highest role that a value of the claim gives. */
function roleOf(claim: unknown, given: ClaimMapping['roles']): Role | undefined {
  const values = [claim].flat()
  return roles.findLast((role) => {
    const wanted = given ? (given[role] ?? []) : [role]
    return wanted.some((one) => values.includes(one))
  })
}

/** A missing list is not an unlimited scope. */
function scopeOf(
  key: 'queues' | 'tenants',
  path: string,
  claims: Claims,
  name: string,
): { [key: string]: readonly string[] } {
  const claim = claimOf(claims, path)
  if (claim === '*') return {}
  const names = [claim].flat()
  const areNames = names.every((one) => typeof one === 'string' && one !== '')
  if (claim === undefined || names.length === 0 || names.length > maxNames || !areNames)
    throw new RedriveError(
      'FORBIDDEN',
      `${name} has no ${key} in Redrive: the claim ${path} of the identity provider must be "*" or 1 to ${maxNames} names`,
    )
  return names.includes('*') ? {} : { [key]: names as string[] }
}
