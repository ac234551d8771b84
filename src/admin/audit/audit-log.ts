import { Batcher } from '../../backends/batcher.ts'
import { checkKeys } from '../../check/keys.ts'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError, hasCode } from '../../errors.ts'
import type {
  AuditAction,
  AuditEntry,
  AuditPosition,
  AuditQuery,
  AuditReport,
  AuditSubject,
} from '../../letter/audit.ts'
import type { Json } from '../../letter/letter.ts'
import type { Page } from '../../letter/query.ts'
import { toMs, toTimestamp, type Timestamp } from '../../letter/time.ts'
import type { ObserverHub } from '../../observer.ts'
import type { Store } from '../../store.ts'
import { currentCaller } from './caller.ts'
import type { AuditDraft } from './chain.ts'
import { Denials } from './denials.ts'
import { checkPosition, checkTime, findEntries } from './query.ts'
import { AuditRecords, maxBatch } from './records.ts'
import { verifyChain } from './verify.ts'

export interface AuditLogOptions {
  store: Pick<Store, 'records'>
  clock: Clock
  hub?: ObserverHub
  /** Removes what must not be stored from a reason. Default: nothing. */
  redact?: (text: string) => string
}

/** An action of a person. */
export interface AuditedAct {
  action: AuditAction
  what: AuditSubject
  /** Default: the actor of `actAs`. */
  actor?: string | undefined
  reason?: string | undefined
}

/** What the entry after the action says besides its outcome. */
export interface ActDetails {
  /** If it is known only then. */
  what?: AuditSubject
  before?: { [key: string]: Json }
  after?: { [key: string]: Json }
}

/** A call that was denied. */
export interface DeniedCall {
  /** The name of the caller. Default: unauthenticated. */
  actor?: string
  endpoint: string
  /** Default: access. */
  action?: AuditAction
  /** Default: the endpoint. */
  what?: AuditSubject
  code: string
  reason?: string
}

/** Longer values are cut. */
const maxText = 1000
/** Younger entries are not pruned: a process that was suspended may be about to append to them. */
const minAgeMs = 86_400_000

/**
 * The audit log: what people did, in a chain of hashes. An action has two entries. The first one is
 * written before the action: if that fails, nothing happens. The second one says how it ended.
 */
export class AuditLog {
  readonly #options: AuditLogOptions
  readonly #records: AuditRecords
  readonly #denials = new Denials()
  readonly #batcher: Batcher<AuditDraft, AuditEntry>

  constructor(options: AuditLogOptions) {
    this.#options = options
    this.#records = new AuditRecords(options.store)
    this.#batcher = new Batcher({ maxInFlight: 1, maxBatchCost: maxBatch }, async (drafts) =>
      (await this.#records.append(drafts)).map((value) => ({ value })),
    )
  }

  /** Performs an action with an entry before it and one after it. */
  async act<T>(
    act: AuditedAct,
    perform: (describe: (details: ActDetails) => void) => Promise<T>,
  ): Promise<T> {
    const draft = this.#draft(act)
    const { seq: startSeq } = await this.#append({ ...draft, outcome: 'started' })
    let details: ActDetails = {}
    const finish = (outcome: Pick<AuditDraft, 'outcome' | 'code'>): Promise<void> =>
      this.#finish({ ...draft, ...details, ...outcome, startSeq })
    let result: T
    try {
      result = await perform((given) => (details = given))
    } catch (error) {
      const isDenied = hasCode(error, 'FORBIDDEN', 'APPROVAL_REQUIRED')
      const code = error instanceof RedriveError ? error.code : 'INTERNAL'
      await finish({ outcome: isDenied ? 'denied' : 'failed', code })
      throw error
    }
    await finish({ outcome: 'done' })
    return result
  }

  /** Records a denied call. Never rejects: the call is denied in any case. */
  async deny({
    actor = 'unauthenticated',
    endpoint,
    action = 'access',
    what,
    code,
    reason,
  }: DeniedCall): Promise<void> {
    const key = JSON.stringify([actor, endpoint, code])
    const repeats = this.#denials.count(key, this.#options.clock.mono())
    if (repeats === undefined) return
    const subject = what ?? { kind: 'endpoint', id: endpoint }
    await this.#finish({
      ...this.#draft({ action, what: subject, actor, reason }),
      endpoint,
      outcome: 'denied',
      code,
      ...(repeats > 0 ? { repeats } : {}),
    })
  }

  find(query: AuditQuery): Promise<Page<AuditEntry>> {
    return findEntries(this.#records, query)
  }

  async verify(expected?: AuditPosition): Promise<AuditReport> {
    if (expected !== undefined) checkPosition(expected)
    return verifyChain(this.#records, expected)
  }

  /** All entries as JSON Lines, the oldest first. */
  async *lines(): AsyncGenerator<string> {
    const pruned = await this.#records.pruned()
    for await (const page of this.#records.pages(pruned?.seq ?? 0))
      for (const entry of page.flatMap(({ entries }) => entries)) yield `${JSON.stringify(entry)}\n`
  }

  /** Removes entries that are older than `before`. The rest can still be verified. */
  async prune(options: PruneOptions): Promise<number> {
    checkKeys('prune options', options, ['before', 'by', 'reason'])
    const { before, by, reason } = options
    checkTime('before', before)
    const beforeMs = toMs(before)
    const latestMs = this.#options.clock.now() - minAgeMs
    if (!(beforeMs <= latestMs))
      throw new RedriveError(
        'INVALID_INPUT',
        `\`before\` must be at least one day ago, at most ${toTimestamp(latestMs)}, got ${before}`,
      )
    const what = { kind: 'store', id: `audit before ${toTimestamp(beforeMs)}` } as const
    return this.act({ action: 'audit-prune', what, actor: by, reason }, async (describe) => {
      const removed = await this.#records.prune(({ at }) => toMs(at) < beforeMs)
      describe({ after: { removed } })
      return removed
    })
  }

  #draft({ action, what, actor, reason }: AuditedAct): Omit<AuditDraft, 'id' | 'at' | 'outcome'> {
    const caller = currentCaller()
    const { redact = (text) => text } = this.#options
    return {
      actor: cut(actor ?? caller.actor ?? 'operator'),
      via: caller.via,
      action,
      what: { kind: what.kind, id: cut(what.id) },
      ...(reason === undefined || reason === '' ? {} : { reason: cut(redact(String(reason))) }),
    }
  }

  #append(draft: Omit<AuditDraft, 'id' | 'at'>): Promise<AuditEntry> {
    const { clock } = this.#options
    return this.#batcher.call({ ...draft, id: clock.id(), at: toTimestamp(clock.now()) })
  }

  /** The action is over, so that an error must not change its result. The entry before it stays. */
  async #finish(draft: Omit<AuditDraft, 'id' | 'at'>): Promise<void> {
    try {
      await this.#append(draft)
    } catch (error) {
      const during = `writing to the audit log that ${draft.action} was ${draft.outcome}`
      this.#options.hub?.emit({ type: 'error', during, error })
    }
  }
}

export interface PruneOptions {
  /** An ISO-8601 timestamp, at least one day ago. */
  before: Timestamp
  /** Who prunes. Default: operator. */
  by?: string
  reason?: string
}

/** Callers without types may give anything, which the action itself rejects. */
function cut(text: unknown): string {
  return typeof text === 'string' ? text.slice(0, maxText) : typeof text
}
