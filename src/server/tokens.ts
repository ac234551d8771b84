import { createHash, timingSafeEqual } from 'node:crypto'
import { AuditLog } from '../admin/audit/audit-log.ts'
import { permissionsOfRole, type Permission, type Role, type Scope } from '../api/permissions.ts'
import { withoutUndefined } from '../check/keys.ts'
import type { Clock } from '../clock/clock.ts'
import { createSecret } from '../clock/secret.ts'
import { RedriveError } from '../errors.ts'
import type { Json } from '../letter/letter.ts'
import { toMs, toTimestamp, type Timestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'
import type { Caller } from './caller.ts'

const kind = 'token'
/** How old `lastUsedAt` may be before it is written again. */
const lastUsedMs = 60_000

/** A token as people see it. Its secret is shown once, when it is created. */
export interface TokenInfo extends Scope {
  id: string
  name: string
  role?: Role
  /** Instead of a role. */
  permissions?: readonly Permission[]
  createdAt: Timestamp
  createdBy: string
  expiresAt?: Timestamp
  lastUsedAt?: Timestamp
}

export type NewToken = Omit<TokenInfo, 'id' | 'createdAt' | 'lastUsedAt'>

type StoredToken = TokenInfo & { sha256: string }

export interface TokensOptions {
  store: Pick<Store, 'records'>
  clock: Clock
}

/**
 * API tokens: `rdr_ID_SECRET`. The store has only the SHA-256 of the secret, which is random and
 * long, so that nobody can guess it from the hash.
 */
export class Tokens {
  readonly #options: TokensOptions
  readonly #audit: AuditLog

  constructor(options: TokensOptions) {
    this.#options = options
    this.#audit = new AuditLog(options)
  }

  /** Creates a token. Its text is not stored, and cannot be shown again. */
  async create(input: NewToken): Promise<{ token: string; info: TokenInfo }> {
    const { store, clock } = this.#options
    const id = createSecret(9)
    const secret = createSecret(32)
    const info = { ...input, id, createdAt: toTimestamp(clock.now()) }
    const stored: StoredToken = { ...info, sha256: hashOf(secret) }
    const act = {
      action: 'token-create',
      what: { kind: 'token', id },
      actor: input.createdBy,
    } as const
    return this.#audit.act(act, async (describe) => {
      await store.records.put(kind, id, stored as unknown as Json, 0)
      describe({ after: detailsOf(info) })
      return { token: `rdr_${id}_${secret}`, info }
    })
  }

  async list(): Promise<TokenInfo[]> {
    const records = await this.#options.store.records.list(kind)
    return records.map(({ value }) => infoOf(value as unknown as StoredToken))
  }

  /** The token has no effect from now on. */
  async revoke(id: string, by?: string): Promise<TokenInfo> {
    const { records } = this.#options.store
    const act = { action: 'token-revoke', what: { kind: 'token', id }, actor: by } as const
    return this.#audit.act(act, async (describe) => {
      const record = await records.get(kind, id)
      if (!record || !(await records.remove(kind, id)))
        throw new RedriveError('TOKEN_NOT_FOUND', `there is no token ${id}: list the tokens`)
      const info = infoOf(record.value as unknown as StoredToken)
      describe({ before: detailsOf(info) })
      return info
    })
  }

  /** The caller that a token belongs to. Undefined: the token is not valid. */
  async identify(token: string): Promise<Caller | undefined> {
    const { store, clock } = this.#options
    const [, id, secret] = /^rdr_([\w-]{12})_([\w-]{43})$/.exec(token) ?? []
    if (id === undefined || secret === undefined) return undefined
    const record = await store.records.get(kind, id)
    if (!record) return undefined
    const stored = record.value as unknown as StoredToken
    if (!isSame(stored.sha256, hashOf(secret))) return undefined
    const { expiresAt, lastUsedAt } = stored
    const nowMs = clock.now()
    if (expiresAt !== undefined && toMs(expiresAt) <= nowMs) return undefined
    if (lastUsedAt === undefined || nowMs - toMs(lastUsedAt) > lastUsedMs) {
      const used = { ...stored, lastUsedAt: toTimestamp(nowMs) }
      // Another request may have written it; a revoked token must not come back.
      await store.records.put(kind, id, used as unknown as Json, record.version)
    }
    return callerOf(stored)
  }
}

/** The caller with the rights of a token. */
function callerOf(token: Pick<TokenInfo, 'name' | 'role' | 'permissions' | keyof Scope>): Caller {
  const { name, role, permissions = role ? permissionsOfRole[role] : [], queues, tenants } = token
  return {
    name,
    ...(role === undefined ? {} : { role }),
    permissions: new Set(permissions),
    scope: { ...(queues ? { queues } : {}), ...(tenants ? { tenants } : {}) },
  }
}

/** What the audit log says about a token. */
function detailsOf({ name, role, permissions, queues, tenants, expiresAt }: TokenInfo): {
  [key: string]: Json
} {
  return withoutUndefined({
    name,
    role,
    permissions: permissions && [...permissions],
    queues: queues && [...queues],
    tenants: tenants && [...tenants],
    expiresAt,
  })
}

function infoOf(stored: StoredToken): TokenInfo {
  const { sha256: _, ...info } = stored
  return info
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Compares in constant time. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
