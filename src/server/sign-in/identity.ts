import type { Caller } from '../caller.ts'
import type { CallerView, SignInMethod } from '../../api/schemas/session.ts'
import { toTimestamp } from '../../letter/time.ts'

/** A caller, and how it has proved who it is. */
export interface Identity {
  caller: Caller
  method: SignInMethod
  /** Equal for requests that share a rate limit. */
  key: string
  /** When the proof is no longer valid. Absent: it does not expire. */
  expiresMs?: number
  /** The API token that the proof is, or that its session was opened with. */
  token?: TokenReference
  /** The record of the session, if the request belongs to one. */
  sessionId?: string
}

/** A token without its secret. It is valid while the token has a secret with this hash. */
export interface TokenReference {
  id: string
  sha256: string
}

export function viewIdentity({ caller, method, expiresMs }: Identity): CallerView {
  const { name, role, permissions, scope } = caller
  return {
    name,
    ...(role === undefined ? {} : { role }),
    permissions: [...permissions],
    ...(scope.queues ? { queues: [...scope.queues] } : {}),
    ...(scope.tenants ? { tenants: [...scope.tenants] } : {}),
    signedInWith: method,
    ...(expiresMs === undefined ? {} : { expiresAt: toTimestamp(expiresMs) }),
  }
}
