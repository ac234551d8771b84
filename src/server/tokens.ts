import { createHash, timingSafeEqual } from 'node:crypto'
import { AuditLog, type AuditedAct } from '../admin/audit/audit-log.ts'
import { permissionsOfRole, type Permission, type Scope } from '../api/permissions.ts'
import type { TokenView } from '../api/schemas/token.ts'
import { withoutUndefined } from '../check/keys.ts'
import type { Clock } from '../clock/clock.ts'
import { createSecret } from '../clock/secret.ts'
import { RedriveError } from '../errors.ts'
import type { Json } from '../letter/letter.ts'
import { toMs, toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'
import type { Caller } from './caller.ts'
import type { Identity, TokenReference } from './sign-in/identity.ts'

const kind = 'token'
/** How old `lastUsedAt` may be before it is written again. */
const lastUsedMs = 60_000
/** How long an old secret may stay valid. */
const maxOverlapMs = 24 * 3_600_000
const maxName = 200
/** Stands for the id of the generated token. Ids in the store are longer. */
const generatedId = 'generated'
/**
 * How long a token that was read is used again. A token that another process revokes or rotates
 * stays valid for at most this long.
 */
const cachedMs = 1000
const maxCached = 1000
/** Attempts of a change when the token keeps changing concurrently. */
const maxAttempts = 20

/** A token as people see it. Its secret is shown once, when it is created. */
export type TokenInfo = TokenView

export type NewToken = Pick<
  TokenInfo,
  'name' | 'role' | 'permissions' | 'createdBy' | 'expiresAt' | keyof Scope
>

type StoredToken = TokenInfo & {
  sha256: string
  /** Of the secret before. */
  oldSha256?: string
}

interface TokenRecord {
  stored: StoredToken
  version: number
}

/** A token with its secret, which cannot be shown again. */
export interface TokenWithSecret {
  token: string
  info: TokenInfo
}

export interface TokensOptions {
  store: Pick<Store, 'records'>
  clock: Clock
}

/** Random, and not an option for the command line, which takes it as an argument. */
function createId(): string {
  const id = createSecret(9)
  return id.startsWith('-') ? createId() : id
}

/**
 * API tokens: `rdr_ID_SECRET`. The store has only the SHA-256 of the secret, which is random and
 * long, so that nobody can guess it from the hash.
 */
export class Tokens {
  readonly #options: TokensOptions
  readonly #audit: AuditLog
  /** Hash of the token of this process. */
  #generated: string | undefined
  /** Tokens that were read lately, by id. Guesses are not kept, so that they do not fill it. */
  readonly #cache = new Map<string, { record: TokenRecord; readMs: number }>()

  constructor(options: TokensOptions) {
    this.#options = options
    this.#audit = new AuditLog(options)
  }

  /** Creates a token. Its text is not stored, and cannot be shown again. */
  async create(input: NewToken): Promise<TokenWithSecret> {
    const { store, clock } = this.#options
    checkNewToken(input, clock.now())
    const id = createId()
    const secret = createSecret(32)
    const info = { ...input, id, createdAt: toTimestamp(clock.now()) }
    const stored: StoredToken = { ...info, sha256: hashOf(secret) }
    const act = tokenAct('token-create', id, input.createdBy)
    return this.#audit.act(act, async (describe) => {
      await store.records.put(kind, id, stored, 0)
      describe({ after: detailsOf(info) })
      return { token: `rdr_${id}_${secret}`, info }
    })
  }

  async get(id: string): Promise<TokenInfo> {
    return infoOf((await this.#load(id)).stored)
  }

  async list(): Promise<TokenInfo[]> {
    const records = await this.#options.store.records.list(kind)
    return records.map(({ value }) => infoOf(value as unknown as StoredToken))
  }

  /** The token has no effect from now on. */
  async revoke(id: string, by?: string): Promise<TokenInfo> {
    return this.#audit.act(tokenAct('token-revoke', id, by), async (describe) => {
      const { stored } = await this.#load(id)
      const isRemoved = await this.#options.store.records.remove(kind, id)
      this.#cache.delete(id)
      if (!isRemoved) throw notFound(id)
      const info = infoOf(stored)
      describe({ before: detailsOf(info) })
      return info
    })
  }

  /**
   * Gives a token a new secret. The old secret stays valid for `overlapMs`, at most 24 hours; one
   * that is even older does not.
   */
  async rotate(id: string, overlapMs = 0, by?: string): Promise<TokenWithSecret> {
    if (!Number.isInteger(overlapMs) || overlapMs < 0 || overlapMs > maxOverlapMs)
      throw new RedriveError(
        'INVALID_INPUT',
        `overlapMs must be an integer from 0 to ${maxOverlapMs} (24 hours), got ${overlapMs}`,
      )
    return this.#audit.act(tokenAct('token-rotate', id, by), async (describe) => {
      const rotated = await this.#rotate(id, overlapMs)
      describe({ after: { ...detailsOf(rotated.info), overlapMs } })
      return rotated
    })
  }

  async #rotate(id: string, overlapMs: number): Promise<TokenWithSecret> {
    const { store, clock } = this.#options
    const secret = createSecret(32)
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { stored, version } = await this.#load(id)
      const nowMs = clock.now()
      if (isExpired(stored, nowMs))
        throw new RedriveError(
          'INVALID_INPUT',
          `token ${id} expired at ${stored.expiresAt}: create a new one`,
        )
      const next = withSecret(stored, hashOf(secret), nowMs, overlapMs)
      const written = await store.records.put(kind, id, next, version)
      this.#cache.delete(id)
      if (written === 'written') return { token: `rdr_${id}_${secret}`, info: infoOf(next) }
    }
    throw new RedriveError(
      'VERSION_CONFLICT',
      `token ${id} kept changing during the call: try again`,
    )
  }

  async #load(id: string): Promise<TokenRecord> {
    const record = await this.#read(id)
    if (!record) throw notFound(id)
    return record
  }

  async #read(id: string): Promise<TokenRecord | undefined> {
    const record = await this.#options.store.records.get(kind, id)
    return record && { stored: record.value as unknown as StoredToken, version: record.version }
  }

  /** The token as it was at most a second ago. */
  async #readCached(id: string): Promise<TokenRecord | undefined> {
    const { clock } = this.#options
    const cached = this.#cache.get(id)
    // The age counts from before the read, so that no change can be missed for longer.
    const readMs = clock.mono()
    if (cached && readMs - cached.readMs < cachedMs) return cached.record
    const record = await this.#read(id)
    if (this.#cache.size >= maxCached) this.#cache.clear()
    if (record) this.#cache.set(id, { record, readMs })
    else this.#cache.delete(id)
    return record
  }

  /**
   * A token for an admin that is valid until the process ends. It is not stored, so that other
   * servers do not accept it.
   */
  generate(): string {
    const token = `rdr_${createSecret(32)}`
    this.#generated = hashOf(token)
    return token
  }

  /** Who has a token. Undefined: the token is not valid. */
  async identify(token: string): Promise<Identity | undefined> {
    const { store, clock } = this.#options
    if (this.#generated !== undefined && isSame(hashOf(token), this.#generated))
      return identityOf(
        { name: 'admin', role: 'admin' },
        { id: generatedId, sha256: hashOf(token) },
      )
    const [, id, secret] = /^rdr_([\w-]{12})_([\w-]{43})$/.exec(token) ?? []
    if (id === undefined || secret === undefined) return undefined
    const record = await this.#readCached(id)
    if (!record) return undefined
    const { stored, version } = record
    const { lastUsedAt } = stored
    const nowMs = clock.now()
    if (!hasHash(stored, hashOf(secret), nowMs) || isExpired(stored, nowMs)) return undefined
    if (lastUsedAt === undefined || nowMs - toMs(lastUsedAt) > lastUsedMs) {
      const used = { ...stored, lastUsedAt: toTimestamp(nowMs) }
      // Another request may have written it; a revoked token must not come back.
      await store.records.put(kind, id, used, version)
      this.#cache.delete(id)
    }
    return identityOf(stored, { id, sha256: hashOf(secret) })
  }

  /** Whether a token that was valid still is. */
  async isValid({ id, sha256 }: TokenReference): Promise<boolean> {
    const { clock } = this.#options
    if (id === generatedId) return this.#generated !== undefined && isSame(sha256, this.#generated)
    const stored = (await this.#readCached(id))?.stored
    const nowMs = clock.now()
    return stored !== undefined && hasHash(stored, sha256, nowMs) && !isExpired(stored, nowMs)
  }
}

function identityOf(
  token: Pick<TokenInfo, 'name' | 'role' | 'permissions' | 'expiresAt' | keyof Scope>,
  reference: TokenReference,
): Identity {
  const { expiresAt } = token
  return {
    caller: callerOf(token),
    method: 'token',
    key: `token ${reference.id}`,
    ...(expiresAt === undefined ? {} : { expiresMs: toMs(expiresAt) }),
    token: reference,
  }
}

function tokenAct(
  action: 'token-create' | 'token-revoke' | 'token-rotate',
  id: string,
  actor: string | undefined,
): AuditedAct {
  return { action, what: { kind: 'token', id }, actor }
}

/** The caller with the rights of a token. */
export function callerOf(
  token: Pick<TokenInfo, 'name' | 'role' | 'permissions' | keyof Scope>,
): Caller {
  const { name, role, queues, tenants } = token
  return {
    name,
    ...(role === undefined ? {} : { role }),
    permissions: new Set(permissionsOf(token)),
    scope: { ...(queues ? { queues } : {}), ...(tenants ? { tenants } : {}) },
  }
}

/** The permissions of a token: its own, or those of its role. */
export function permissionsOf({
  role,
  permissions,
}: Pick<TokenInfo, 'role' | 'permissions'>): readonly Permission[] {
  return permissions ?? (role ? permissionsOfRole[role] : [])
}

function checkNewToken(token: NewToken, nowMs: number): void {
  const { name, role, permissions, expiresAt } = token
  if (name === '' || name.length > maxName)
    throw new RedriveError(
      'INVALID_INPUT',
      `the name of a token must have 1 to ${maxName} characters, got ${name.length}`,
    )
  if ((role === undefined) === (permissions === undefined))
    throw new RedriveError('INVALID_INPUT', 'a token needs either `role` or `permissions`')
  if (expiresAt !== undefined && toMs(expiresAt) <= nowMs)
    throw new RedriveError('INVALID_INPUT', `\`expiresAt\` must be in the future, got ${expiresAt}`)
}

function withSecret(
  stored: StoredToken,
  sha256: string,
  nowMs: number,
  overlapMs: number,
): StoredToken {
  const { oldSha256: _, oldSecretUntil: __, ...rest } = stored
  return {
    ...rest,
    sha256,
    rotatedAt: toTimestamp(nowMs),
    ...(overlapMs > 0
      ? { oldSha256: stored.sha256, oldSecretUntil: toTimestamp(nowMs + overlapMs) }
      : {}),
  }
}

/** Whether a secret with this hash is valid. */
function hasHash(stored: StoredToken, hash: string, nowMs: number): boolean {
  const { sha256, oldSha256, oldSecretUntil } = stored
  if (isSame(sha256, hash)) return true
  if (oldSha256 === undefined || oldSecretUntil === undefined) return false
  return isSame(oldSha256, hash) && nowMs < toMs(oldSecretUntil)
}

function isExpired({ expiresAt }: TokenInfo, nowMs: number): boolean {
  return expiresAt !== undefined && toMs(expiresAt) <= nowMs
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
  const { sha256: _, oldSha256: __, ...info } = stored
  return info
}

function notFound(id: string): RedriveError {
  return new RedriveError('TOKEN_NOT_FOUND', `there is no token ${id}: list the tokens`)
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Compares in constant time. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
