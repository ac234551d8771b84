import { checkContext, checkSize, jsonOf, metadataOf } from './capture/context.ts'
import type { Clock } from './clock.ts'
import { dropEdit, dropUnmade, forgetEdits, keepEdit, newestEdit } from './edits.ts'
import { RedriveError } from './errors.ts'
import type { DeadLetter, Json, Priority } from './letter/letter.ts'
import * as moves from './letter/moves.ts'
import { encodePayload } from './letter/payload.ts'
import type { LetterFilter } from './letter/query.ts'
import { toTimestamp } from './letter/time.ts'
import type { ObserverHub } from './observer.ts'
import type { Rule } from './policy/classify.ts'
import { decideAfterRun } from './policy/decide.ts'
import { understand } from './policy/judge.ts'
import type { RetryLimits } from './policy/retry-limits.ts'
import type { Store } from './store.ts'

export interface AdminOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  classifierRules: readonly Rule[]
  backoffs: Record<string, (retry: number, failure: DeadLetter['failure']) => number>
  /** How often, or for how long, letters of a queue are retried. */
  limitsFor: (queue: string) => RetryLimits
  maxPayloadBytes: number
  /** Tells the observers how a letter went. */
  announce: (letter: DeadLetter, change: moves.Change) => void
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

  retry(id: string, by: string): Promise<DeadLetter> {
    return this.#act(id, 'retry', by, (letter, mover) => moves.retry(letter, mover))
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

  async review(id: string, { decision, note, by }: ReviewInput): Promise<DeadLetter> {
    if (!['requeue', 'resolve', 'discard'].includes(decision))
      throw new RedriveError(
        'INVALID_INPUT',
        `decision must be requeue, resolve or discard, got ${String(decision)}`,
      )
    return this.#act(
      id,
      'review',
      by,
      (letter, mover) => moves.review(letter, mover, decision),
      note,
    )
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
      hub.emit({ type: 'trouble', during: `${during} ${letter.queue}`, error: problem })
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

/** The history tells who did what. */
function mustBeSaid(by: unknown, note: unknown = ''): void {
  if (typeof by === 'string' && by !== '' && typeof note === 'string') return
  const what =
    typeof note === 'string' ? '`by` must be a text that is not empty' : '`note` must be a text'
  throw new RedriveError('INVALID_INPUT', what)
}

/** What an edit says, checked as it is at the door, and of its own. */
function readEdit(input: EditInput): moves.Edit {
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
