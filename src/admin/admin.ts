import { checkRemoval } from '../check/filter.ts'
import { checkContext, checkSize, isTimestamp, jsonOf, metadataOf } from '../capture/context.ts'
import type { Clock } from '../clock/clock.ts'
import { dropEdit, dropUnmade, forgetEdits, keepEdit, newestEdit } from './edits.ts'
import { RedriveError } from '../errors.ts'
import { checkKeys, checkOneOf, keysOf } from '../check/keys.ts'
import type { DeadLetter, Json, Priority } from '../letter/letter.ts'
import { replaysOfLetter } from '../letter/lineage.ts'
import * as moves from '../letter/moves.ts'
import { encodePayload } from '../letter/payload.ts'
import type { LetterFilter } from '../letter/query.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Mailbox } from '../mailbox.ts'
import type { ObserverHub } from '../observer.ts'
import type { Rule } from '../policy/classify.ts'
import { decideAfterRun } from '../policy/decide.ts'
import { understand } from '../policy/judge.ts'
import type { RetryLimits } from '../policy/retry-limits.ts'
import type { ReplayOutcome } from '../letter/result.ts'
import { waitForRun } from './wait-for-run.ts'
import type { Store } from '../store.ts'

export interface AdminOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  classifierRules: readonly Rule[]
  backoffs: Record<string, (retry: number, failure: DeadLetter['failure']) => number>
  /** How often, or for how long, letters of a queue are retried. */
  limitsFor: (queue: string) => RetryLimits
  maxPayloadBytes: number
  /** How often to look for what other processes did. */
  pollMs: number
  /** Publishes a letter to its source, or to the mailbox `to`. */
  publish: (letter: DeadLetter, to?: string | Mailbox) => Promise<ReplayOutcome>
  /** Tells the observers how a letter went. */
  announce: (letter: DeadLetter, change: moves.Change) => void
}

export interface RetryOptions {
  /** When it becomes due: an ISO-8601 timestamp or a Date. Default: now. One in the past means now. */
  at?: string | Date
  /**
   * True: resolves once the next run has ended, in whichever process, with the letter as it stands then: resolved, rescheduled,
   * exhausted or parked. When no process has a handler for its queue, the letter is parked by a worker, or waits as long as none runs.
   */
  wait?: boolean
  /** Ends the waiting. The letter stays due. */
  signal?: AbortSignal
}

export interface LetterReplayOptions {
  /** Another mailbox than the letter's own: its name, as loops or the option `mailboxes` know it, or the mailbox itself. */
  to?: string | Mailbox
}

export interface ReviewInput {
  decision: 'requeue' | 'resolve' | 'discard'
  note?: string
  by: string
}

export interface EditInput {
  /** The new payload: bytes, text with its content type, or a JS value. */
  payload?: unknown
  contentType?: string
  headers?: Record<string, string>
  priority?: Priority
  tags?: string[]
  metadata?: { [key: string]: Json }
  reason: string
  by: string
}

/** Tries of a person's action when the letter changes meanwhile. */
const maxTries = 5

/**
 * What a person may do to one letter. Each action looks at the letter, asks the table of moves, and writes with
 * the version it looked at; when the letter changed meanwhile it looks again. It answers with the letter as it
 * now stands.
 */
export class Admin {
  readonly #options: AdminOptions

  constructor(options: AdminOptions) {
    this.#options = options
  }

  /** Makes a letter due, now or at `at`. With `wait` it answers once the next run has ended. */
  async retry(id: string, by: string, options: RetryOptions): Promise<DeadLetter> {
    const { at, wait, signal } = checkRetry(options)
    signal?.throwIfAborted()
    const dueMs = at === undefined ? 0 : new Date(at).getTime()
    const retryAt = toTimestamp(Math.max(dueMs, this.#options.clock.now()))
    const letter = await this.#act(id, 'retry', by, (now, mover) =>
      moves.retry(now, mover, retryAt),
    )
    return wait ? waitForRun(letter, { ...this.#options, signal }) : letter
  }

  resolve(id: string, by: string): Promise<DeadLetter> {
    return this.#act(id, 'resolve', by, (letter, mover) => moves.resolve(letter, mover))
  }

  /** The work was done elsewhere and failed: counts as a run, and goes the way of every failed run. */
  fail(id: string, error: unknown, by: string): Promise<DeadLetter> {
    return this.#act(id, 'reschedule', by, (letter, mover) => this.#failed(letter, mover, error))
  }

  park(id: string, note: string | undefined, by: string): Promise<DeadLetter> {
    return this.#act(
      id,
      'park',
      by,
      (letter, mover) => moves.park(letter, mover, { reason: 'operator' }),
      note,
    )
  }

  async review(id: string, input: ReviewInput): Promise<DeadLetter> {
    checkKeys('review', input, ['decision', 'note', 'by'])
    const { decision, note, by } = input
    checkOneOf('decision', [decision], ['requeue', 'resolve', 'discard'])
    return this.#act(
      id,
      'review',
      by,
      (letter, mover) => moves.review(letter, mover, decision),
      note,
    )
  }

  /**
   * Publishes a letter as it is now, and only then records that. A crash in between, or a failure to record, leaves the letter as it was:
   * replayed again it may be published twice, and is never lost. At the limit it is parked instead.
   */
  async replay(id: string, by: string, options: LetterReplayOptions): Promise<DeadLetter> {
    checkKeys('replay options', options, ['to'])
    mustBeSaid(by)
    let letter = await this.#look(id)
    this.#mustBeLegal('replay', letter)
    const outcome = await this.#options.publish(letter, options.to)
    const { version } = letter.payload
    for (let tries = 0; tries < maxTries; tries++) {
      const { change, now } = await this.#recordReplay(letter, by, outcome)
      if (now) {
        this.#options.announce(now, change)
        return now
      }
      letter = await this.#look(id)
      if (!moves.isLegal('replay', letter.state) || letter.payload.version !== version) break
    }
    const done = outcome.kind === 'published' ? `was published to ${outcome.to}` : 'is at its limit'
    throw new RedriveError(
      'VERSION_CONFLICT',
      `letter ${id} ${done}, but changed before that was recorded (it is ${letter.state}): look at it before you replay it again`,
    )
  }

  /** Without `now` the letter changed meanwhile. */
  async #recordReplay(
    letter: DeadLetter,
    actor: string,
    outcome: ReplayOutcome,
  ): Promise<{ change: moves.Change; now?: DeadLetter }> {
    const { store, clock } = this.#options
    const by = { at: toTimestamp(clock.now()), actor, guard: 'version' } as const
    const change =
      outcome.kind === 'published'
        ? moves.replay(
            letter,
            { ...by, note: `published to ${outcome.to}` },
            replaysOfLetter(letter) + 1,
          )
        : moves.parkAtReplayLimit(letter, {
            ...by,
            note: `replayed ${outcome.replays} times, the limit is ${outcome.maxReplays} (maxReplays)`,
          })
    const [result] = await store.apply([change])
    return result === 'written' ? { change, now: moves.withChange(letter, change) } : { change }
  }

  archive(id: string, by: string): Promise<DeadLetter> {
    return this.#act(id, 'archive', by, (letter, mover) => moves.archive(letter, mover))
  }

  restore(id: string, by: string): Promise<DeadLetter> {
    return this.#act(id, 'restore', by, (letter, mover) => moves.restore(letter, mover))
  }

  /** Keeps what was there before in a record, so that it can be undone, and then makes the next version. */
  async edit(id: string, input: EditInput): Promise<DeadLetter> {
    const { payload, ...edited } = readEdit(input)
    return this.#act(
      id,
      'edit',
      input.by,
      async (letter, mover) => {
        if (payload) checkSize(payload, letter.queue, this.#options.maxPayloadBytes)
        const values: moves.Edit = {
          ...(payload ? { payload: { ...payload, version: letter.payload.version + 1 } } : {}),
          ...edited,
        }
        await keepEdit(this.#options.store, letter, before(letter, values))
        return moves.edit(letter, mover, values)
      },
      input.reason,
      (letter) => dropUnmade(this.#options.store, letter),
    )
  }

  /** Takes the newest edit back. The payload gets a new version with the bytes it had before. */
  async undoEdit(id: string, by: string): Promise<DeadLetter> {
    const { store } = this.#options
    const newest = await newestEdit(store, id)
    if (!newest) throw new RedriveError('INVALID_INPUT', `letter ${id} has no edit to undo`)
    const letter = await this.#act(
      id,
      'edit',
      by,
      (current, mover) => moves.edit(current, mover, restored(current, newest.value)),
      'edit undone',
    )
    await dropEdit(store, newest.id)
    return letter
  }

  async remove(id: string, by: string): Promise<DeadLetter> {
    const { store, hub } = this.#options
    mustBeSaid(by)
    const letter = await this.#look(id)
    this.#mustBeLegal('remove', letter)
    if ((await store.remove({ ids: [id] })) === 0)
      throw new RedriveError(
        'VERSION_CONFLICT',
        `letter ${id} was taken by a worker or removed by someone else: look again`,
      )
    hub.emit({ type: 'removed', count: 1, by, letter })
    // What is left when this fails, the sweep forgets.
    await forgetEdits(store, id)
    return letter
  }

  /** Removes it if it is there. One that is being run rejects with ILLEGAL_MOVE: it is to be asked again. */
  async forget(id: string, by: string): Promise<boolean> {
    const [letter] = await this.#options.store.get([id])
    if (!letter) return false
    await this.remove(id, by)
    return true
  }

  /** Removes all that match, once the caller has said how many that are. Leased letters stay. */
  async clear(filter: LetterFilter, confirm: number, by: string): Promise<number> {
    const { store, hub } = this.#options
    checkRemoval(filter)
    const counts = await store.tally('state', filter)
    const count = [...counts].reduce(
      (sum, [state, letters]) => sum + (state === 'retrying' ? 0 : letters),
      0,
    )
    if (confirm !== count)
      throw new RedriveError(
        'INVALID_INPUT',
        `${count} letters match and would be removed for ever: confirm with that number, got ${confirm}`,
      )
    const removed = await store.remove(filter)
    hub.emit({ type: 'removed', count: removed, by })
    return removed
  }

  #failed(letter: DeadLetter, mover: moves.Mover, error: unknown): moves.Change {
    const { clock, hub, classifierRules, backoffs, limitsFor } = this.#options
    const report = (during: string, problem: string): void =>
      hub.emit({ type: 'error', during: `${during} ${letter.queue}`, error: problem })
    const { judged, template } = understand(
      error,
      letter.queue,
      mover.at,
      classifierRules,
      (problem) => report('classifying', problem),
    )
    const retries = letter.state === 'pending' ? letter.retries + 1 : letter.retries
    const next = decideAfterRun({
      letter: { ...letter, retries },
      judged,
      limits: limitsFor(letter.queue),
      nowMs: clock.now(),
      random: () => clock.random(),
      customs: backoffs,
      ...(template?.backoff ? { policyOverride: template.backoff } : {}),
    })
    if ('problem' in next && next.problem) report('backoff of', next.problem)
    const failed = { judged, retries, maxRetries: next.maxRetries }
    if (next.move === 'exhaust') return moves.exhaust(letter, mover, failed)
    if (next.move === 'park') return moves.park(letter, mover, { ...failed, reason: next.reason })
    const retryAt = toTimestamp(clock.now() + next.delayMs)
    const { delayMs: backoffMs, policy } = next
    return moves.reschedule(letter, mover, { ...failed, retryAt, backoffMs, policy })
  }

  async #act(
    id: string,
    move: moves.Move,
    actor: string,
    decide: (letter: DeadLetter, mover: moves.Mover) => moves.Change | Promise<moves.Change>,
    note?: string,
    tooLate?: (letter: DeadLetter) => Promise<void>,
  ): Promise<DeadLetter> {
    const { store, clock, announce } = this.#options
    mustBeSaid(actor, note)
    for (let tries = 0; tries < maxTries; tries++) {
      const letter = await this.#look(id)
      this.#mustBeLegal(move, letter)
      const at = toTimestamp(clock.now())
      const change = await decide(letter, {
        at,
        actor,
        guard: 'version',
        ...(note === undefined ? {} : { note }),
      })
      const [result] = await store.apply([change])
      if (result === 'written') {
        const now = moves.withChange(letter, change)
        announce(now, change)
        return now
      }
      await tooLate?.(letter)
    }
    throw new RedriveError(
      'VERSION_CONFLICT',
      `letter ${id} kept changing while it was to be moved: look at it and try again`,
    )
  }

  async #look(id: string): Promise<DeadLetter> {
    const [letter] = await this.#options.store.get([id])
    if (!letter) throw new RedriveError('LETTER_NOT_FOUND', `there is no letter ${id}`)
    return letter
  }

  #mustBeLegal(move: moves.Move, letter: DeadLetter): void {
    if (moves.isLegal(move, letter.state)) return
    const from = moves.moveTable[move].from.join(', ')
    throw new RedriveError(
      'ILLEGAL_MOVE',
      `letter ${letter.id} is ${letter.state}: ${move} is possible when it is ${from}`,
    )
  }
}

function checkRetry(options: RetryOptions): RetryOptions {
  checkKeys('retry options', options, ['at', 'wait', 'signal'])
  const { at, wait, signal } = options
  const bad = (what: string): never => {
    throw new RedriveError('INVALID_INPUT', what)
  }
  if (at !== undefined && !isTimestamp(at))
    bad(`\`at\` must be an ISO-8601 timestamp or a Date, got ${String(at).slice(0, 80)}`)
  if (wait !== undefined && typeof wait !== 'boolean')
    bad(`\`wait\` must be true or false, got ${typeof wait}`)
  if (signal !== undefined && !(signal instanceof AbortSignal))
    bad(`\`signal\` must be an AbortSignal, got ${typeof signal}`)
  return options
}

/** The history tells who did what. */
function mustBeSaid(by: unknown, note: unknown = ''): void {
  if (typeof by === 'string' && by !== '' && typeof note === 'string') return
  const what =
    typeof note === 'string' ? '`by` must be a text that is not empty' : '`note` must be a text'
  throw new RedriveError('INVALID_INPUT', what)
}

const editKeys = keysOf<EditInput>({
  payload: true,
  contentType: true,
  headers: true,
  priority: true,
  tags: true,
  metadata: true,
  reason: true,
  by: true,
})

/** What an edit says, checked as it is at the door, and of its own. */
function readEdit(input: EditInput): moves.Edit {
  checkKeys('edit', input, editKeys)
  const { by, reason, headers, priority, tags, metadata, contentType } = input
  if (!by || !reason || typeof by !== 'string' || typeof reason !== 'string')
    throw new RedriveError('INVALID_INPUT', 'an edit needs `by` and a `reason`')
  const said = {
    headers: headers ?? {},
    tags: tags ?? [],
    ...(priority === undefined ? {} : { priority }),
    ...(contentType === undefined ? {} : { contentType }),
  }
  checkContext(said)
  const type = contentType ?? undefined
  return {
    ...('payload' in input ? { payload: encodePayload(input.payload, type) } : {}),
    ...(headers ? { headers: jsonOf(headers) as typeof headers } : {}),
    ...(priority ? { priority } : {}),
    ...(tags ? { tags: [...tags] } : {}),
    ...(metadata ? { metadata: metadataOf(metadata) } : {}),
  }
}

/** The fields that an edit is about to change, as they are now. */
function before(letter: DeadLetter, values: moves.Edit): { [key: string]: Json } {
  const kept: { [key: string]: Json } = {}
  if (values.payload) {
    const { bytes, contentType, lossy = false } = letter.payload
    kept['payload'] = { bytes: Buffer.from(bytes).toString('base64'), contentType, lossy }
  }
  if (values.headers) kept['headers'] = letter.headers ?? {}
  if (values.priority) kept['priority'] = letter.priority
  if (values.tags) kept['tags'] = letter.tags
  if (values.metadata) kept['metadata'] = letter.metadata
  return kept
}

function restored(letter: DeadLetter, value: Json): moves.Edit {
  const { payload, ...rest } = value as Omit<moves.Edit, 'payload'> & { payload?: Json }
  if (!payload) return rest
  const {
    bytes: base64,
    contentType,
    lossy,
  } = payload as { bytes: string; contentType: string; lossy: boolean }
  const bytes = Buffer.from(base64, 'base64')
  const version = letter.payload.version + 1
  return {
    ...rest,
    payload: { bytes, contentType, size: bytes.length, version, ...(lossy ? { lossy } : {}) },
  }
}
