import { createHash } from 'node:crypto'
import { AuditLog } from '../../admin/audit/audit-log.ts'
import type { Permission, Role } from '../../api/permissions.ts'
import type { SignInMethod } from '../../api/schemas/session.ts'
import { withoutUndefined } from '../../check/keys.ts'
import type { Clock } from '../../clock/clock.ts'
import { createSecret } from '../../clock/secret.ts'
import type { Json } from '../../letter/letter.ts'
import type { Store } from '../../store.ts'
import { callerOf, type Tokens } from '../tokens.ts'
import type { Identity, TokenReference } from './identity.ts'

const kind = 'session'
const hourMs = 3_600_000
const sessionDefaults = { idleMs: 12 * hourMs, maxMs: 7 * 24 * hourMs }
/** How old the time of the last use may be before it is written again. */
const writeUseMs = 60_000
const sweepEveryMs = 60_000
const sweepLimit = 500

interface StoredSession {
  name: string
  role?: Role
  permissions: Permission[]
  queues?: string[]
  tenants?: string[]
  method: SignInMethod
  token?: TokenReference
  usedMs: number
  /** The end of the session, however often it is used. */
  endsMs: number
}

export interface SessionsOptions {
  store: Pick<Store, 'records'>
  clock: Clock
  tokens: Tokens
  idleMs?: number | undefined
  maxMs?: number | undefined
}

/** A new session. Its secret is the value of the cookie. */
export interface NewSession {
  secret: string
  identity: Identity
  /** The end of the session, however often it is used. */
  endsMs: number
}

/**
 * Sessions of browsers. The store has them, so that all servers know them, under the hash of their
 * secret, so that nobody can use what the store has.
 */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #idleMs: number
  readonly #maxMs: number
  readonly #audit: AuditLog
  #sweptMs = 0
  #sweptTo: string | undefined

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#idleMs = options.idleMs ?? sessionDefaults.idleMs
    this.#maxMs = options.maxMs ?? sessionDefaults.maxMs
    this.#audit = new AuditLog(options)
  }

  /** Opens a session for a caller. It ends with the token that it was opened with, if any. */
  async create({ caller, method, token, expiresMs = Infinity }: Identity): Promise<NewSession> {
    const { store, clock } = this.#options
    await this.#sweep()
    const secret = createSecret(32)
    const sessionId = hashOf(secret)
    const nowMs = clock.now()
    const { name, role, permissions, scope } = caller
    const rights = withoutUndefined({
      role,
      permissions: [...permissions],
      queues: scope.queues && [...scope.queues],
      tenants: scope.tenants && [...scope.tenants],
    })
    const stored: StoredSession = {
      name,
      ...rights,
      method,
      ...(token ? { token } : {}),
      usedMs: nowMs,
      endsMs: Math.min(nowMs + this.#maxMs, expiresMs),
    }
    const act = { action: 'sign-in', what: subjectOf(sessionId), actor: name } as const
    await this.#audit.act(act, async (describe) => {
      await store.records.put(kind, sessionId, stored as unknown as Json, 0)
      describe({ after: { method, ...rights, ...(token ? { token: token.id } : {}) } })
    })
    return { secret, identity: this.#identityOf(sessionId, stored), endsMs: stored.endsMs }
  }

  /**
   * Who has the session with this secret. Undefined: it is unknown, or over. A use of the session
   * extends it.
   */
  async find(secret: string, isUse: boolean): Promise<Identity | undefined> {
    const { store, clock, tokens } = this.#options
    const sessionId = hashOf(secret)
    const record = await store.records.get(kind, sessionId)
    if (!record) return undefined
    const stored = record.value as unknown as StoredSession
    const nowMs = clock.now()
    if (this.#isOver(stored, nowMs)) return undefined
    if (stored.token && !(await tokens.isValid(stored.token))) return undefined
    if (isUse && nowMs - stored.usedMs > Math.min(writeUseMs, this.#idleMs / 10)) {
      stored.usedMs = nowMs
      // Another request may have written it; a session that was ended must not come back.
      await store.records.put(kind, sessionId, stored as unknown as Json, record.version)
    }
    return this.#identityOf(sessionId, stored)
  }

  /** Ends a session. False: it was over. */
  async end({ sessionId, caller }: Identity): Promise<boolean> {
    if (sessionId === undefined) return false
    const act = { action: 'sign-out', what: subjectOf(sessionId), actor: caller.name } as const
    return this.#audit.act(act, () => this.#options.store.records.remove(kind, sessionId))
  }

  #identityOf(sessionId: string, { method, token, ...stored }: StoredSession): Identity {
    return {
      caller: callerOf(stored),
      method,
      key: `session ${sessionId}`,
      expiresMs: Math.min(stored.endsMs, stored.usedMs + this.#idleMs),
      ...(token ? { token } : {}),
      sessionId,
    }
  }

  #isOver({ usedMs, endsMs }: StoredSession, nowMs: number): boolean {
    return nowMs >= endsMs || nowMs - usedMs >= this.#idleMs
  }

  /** Removes some of the sessions that are over, at most once a minute. */
  async #sweep(): Promise<void> {
    const { store, clock } = this.#options
    const nowMs = clock.now()
    if (nowMs - this.#sweptMs < sweepEveryMs) return
    this.#sweptMs = nowMs
    const page = await store.records.list(kind, {
      limit: sweepLimit,
      ...(this.#sweptTo === undefined ? {} : { after: this.#sweptTo }),
    })
    this.#sweptTo = page.length < sweepLimit ? undefined : page.at(-1)!.id
    for (const { id, value } of page)
      if (this.#isOver(value as unknown as StoredSession, nowMs))
        await store.records.remove(kind, id)
  }
}

/** The start of the hash names a session in the audit log. */
function subjectOf(sessionId: string): { kind: 'session'; id: string } {
  return { kind: 'session', id: sessionId.slice(0, 16) }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}
