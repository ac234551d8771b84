import { checkSize } from '../capture/context.ts'
import { checkComplete, checkNotErased } from '../check/complete.ts'
import { checkDecrypted } from '../check/decrypted.ts'
import { whyEditRefused, type EditRules } from '../check/edit-rules.ts'
import { checkRemoval } from '../check/filter.ts'
import { checkKeys, checkOneOf } from '../check/keys.ts'
import { patchPayload } from '../check/patch-payload.ts'
import { checkBy, checkNote } from '../check/text.ts'
import { RedriveError } from '../errors.ts'
import { toCanonicalJson } from '../letter/canonical-json.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { isLegal, moveTable, type Move } from '../letter/move-table.ts'
import * as moves from '../letter/moves.ts'
import type { LetterFilter } from '../letter/query.ts'
import { whyReplayRefused, type FixCheck, type ReplaySafety } from '../letter/replay-safety.ts'
import type { ReplayOutcome } from '../letter/result.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Mailbox } from '../mailbox.ts'
import type { Store } from '../store.ts'
import {
  readActionOptions,
  readRetryOptions,
  readVersion,
  type ActionOptions,
  type LetterReplayOptions,
  type RetryOptions,
  type ReviewInput,
} from './action-input.ts'
import type { AuditLog } from './audit/audit-log.ts'
import { describeEdit, describeLetter } from './audit/letter-details.ts'
import { clearLetters } from './clear-letters.ts'
import {
  readEdit,
  createUndoEdit,
  readCurrentValues,
  undoNote,
  type EditInput,
  type ReadEdit,
} from './edit-input.ts'
import { findNewestEdit, removeEdit, removeEdits, removeUnusedEdit, saveEdit } from './edits.ts'
import { archiveForRemoval } from './archive-for-removal.ts'
import { checkAct, loadLetter, type Describe, type LetterAct } from './letter-act.ts'
import { prepareReplays, type PublishedLetter } from './replay-confirmation.ts'
import { checkNoMark, redactEdit } from './redacted-edit.ts'
import { reportFailure, type FailureOptions } from './report-failure.ts'
import { waitForRun } from './wait-for-run.ts'

export interface AdminOptions extends FailureOptions {
  store: Store
  audit: AuditLog
  /** Rules for edits and replays of a queue. */
  repairRulesFor: (queue: string) => EditRules & { replay: ReplaySafety; confirmReplayMs: number }
  /** Creates a check whether the groups of letters are fixed. */
  createFixCheck: () => FixCheck
  maxPayloadBytes: number
  /** Interval of polling for changes by other processes. */
  pollMs: number
  /** Publishes a letter to its source, or to the mailbox `to`. */
  publish: (letter: DeadLetter, to?: string | Mailbox) => Promise<ReplayOutcome>
  /** Gets every failed run whose change was written: the letter before it. Never throws. */
  onFailedRun?: (letter: DeadLetter, change: moves.Change) => void
}

/** Attempts of an action when the letter keeps changing concurrently. */
const maxAttempts = 5

/**
 * Actions of a person on letters. Each action reads the letter, checks the table of moves and
 * writes with the version that it read; if the letter has changed meanwhile, it starts over. It
 * resolves with the letter after the action.
 */
export class Admin {
  readonly #options: AdminOptions

  constructor(options: AdminOptions) {
    this.#options = options
  }

  /** Makes a letter due, now or at `at`. With `wait` it resolves after the next run. */
  async retry(id: string, by: string, options: RetryOptions): Promise<DeadLetter> {
    const { at = '', wait, signal, ifVersion } = readRetryOptions(options)
    signal?.throwIfAborted()
    const now = toTimestamp(this.#options.clock.now())
    const retryAt = at > now ? at : now
    const letter = await this.#act({ id, move: 'retry', by, ifVersion }, (before, mover) => {
      checkComplete(before, 'be retried')
      return moves.retry(before, mover, retryAt)
    })
    return wait ? waitForRun(letter, { ...this.#options, signal }) : letter
  }

  async resolve(id: string, by: string, options: ActionOptions): Promise<DeadLetter> {
    const ifVersion = readActionOptions(options)
    return this.#act({ id, move: 'resolve', by, ifVersion }, moves.resolve)
  }

  /** Reports a failed run that happened elsewhere. It counts like a run of a handler. */
  async fail(id: string, error: unknown, by: string, options: ActionOptions): Promise<DeadLetter> {
    const ifVersion = readActionOptions(options)
    return this.#act({ id, move: 'reschedule', by, ifVersion }, (letter, mover) =>
      reportFailure(this.#options, letter, mover, error),
    )
  }

  async park(
    id: string,
    note: string | undefined,
    by: string,
    options: ActionOptions,
  ): Promise<DeadLetter> {
    const ifVersion = readActionOptions(options)
    return this.#act({ id, move: 'park', by, note, ifVersion }, (letter, mover) =>
      moves.park(letter, mover, { reason: 'operator' }),
    )
  }

  async review(id: string, input: ReviewInput): Promise<DeadLetter> {
    checkKeys('review', input, ['decision', 'note', 'by', 'ifVersion'])
    const { decision, note, by } = input
    checkOneOf('decision', [decision], ['requeue', 'resolve', 'discard'])
    const ifVersion = readVersion(input)
    return this.#act({ id, move: 'review', by, note, ifVersion }, (letter, mover) => {
      if (decision === 'requeue') checkComplete(letter, 'be retried')
      return moves.review(letter, mover, decision)
    })
  }

  /**
   * Publishes a letter as it is now, then records that. After a crash in between the letter is
   * unchanged: another replay may publish it twice, but it is never lost. At the limit it is
   * parked.
   */
  async replay(id: string, by: string, options: LetterReplayOptions): Promise<DeadLetter> {
    checkKeys('replay options', options, ['to', 'ifVersion'])
    const actor = checkBy(by)
    return this.#audit({ id, move: 'replay', by: actor }, (describe) =>
      this.#replay(id, actor, options, describe),
    )
  }

  async #replay(
    id: string,
    actor: string,
    options: LetterReplayOptions,
    describe: Describe,
  ): Promise<DeadLetter> {
    let letter = await loadLetter(this.#options.store, id, readVersion(options))
    this.#checkMove('replay', letter)
    checkDecrypted(letter)
    checkComplete(letter, 'be replayed')
    const { repairRulesFor, createFixCheck } = this.#options
    const refusal =
      whyReplayRefused(letter, repairRulesFor(letter.queue).replay) ??
      (await createFixCheck()(letter))
    if (refusal !== undefined)
      throw new RedriveError('REPLAY_REFUSED', `letter ${id} cannot be replayed: ${refusal}`)
    const outcome = await this.#options.publish(letter, options.to)
    const { version } = letter.payload
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { change, now } = await this.#recordReplay(letter, actor, outcome)
      if (now) {
        describe({ before: describeLetter(letter), after: describeLetter(now) })
        this.#options.hub.emitChange(now, change)
        return now
      }
      letter = await loadLetter(this.#options.store, id)
      if (!isLegal('replay', letter.state) || letter.payload.version !== version) break
    }
    const done =
      outcome.kind === 'published' ? `was published to ${outcome.to}` : 'is at its replay limit'
    throw new RedriveError(
      'VERSION_CONFLICT',
      `letter ${id} ${done}, but changed before that was recorded (it is ${letter.state}): check it before you replay it again`,
    )
  }

  /** Records the outcome. Without `now` in the result, the letter has changed meanwhile. */
  async #recordReplay(
    letter: DeadLetter,
    actor: string,
    outcome: ReplayOutcome,
  ): Promise<{ change: moves.Change; now?: DeadLetter }> {
    const { store, clock } = this.#options
    const by = { at: toTimestamp(clock.now()), actor, guard: 'version' } as const
    const [change] =
      outcome.kind === 'published'
        ? await this.prepareReplays([
            {
              letter,
              messageId: outcome.messageId,
              by: { ...by, note: `published to ${outcome.to}` },
            },
          ])
        : [
            moves.parkAtReplayLimit(letter, {
              ...by,
              note: `replayed ${outcome.replays} times, the limit is ${outcome.maxReplays} (maxReplays)`,
            }),
          ]
    const [result] = await store.apply([change!])
    return result === 'written'
      ? { change: change!, now: moves.withChange(letter, change!) }
      : { change: change! }
  }

  /** The changes that replays make, in the same order. */
  prepareReplays(published: readonly PublishedLetter[]): Promise<moves.Change[]> {
    return prepareReplays(this.#options, published)
  }

  /** Adds a note to the history. */
  async note(id: string, text: string, by: string, options: ActionOptions): Promise<DeadLetter> {
    const note = checkNote(text)
    const ifVersion = readActionOptions(options)
    return this.#act({ id, move: 'note', by, note, ifVersion }, moves.note)
  }

  async archive(id: string, by: string, options: ActionOptions): Promise<DeadLetter> {
    const ifVersion = readActionOptions(options)
    return this.#act({ id, move: 'archive', by, ifVersion }, moves.archive)
  }

  async restore(id: string, by: string, options: ActionOptions): Promise<DeadLetter> {
    const ifVersion = readActionOptions(options)
    return this.#act({ id, move: 'restore', by, ifVersion }, moves.restore)
  }

  /** Saves the present values, so that the edit can be undone, then changes the letter. */
  async edit(id: string, input: EditInput): Promise<DeadLetter> {
    const edit = readEdit(input)
    return this.#act(
      { id, move: 'edit', by: input.by, note: input.reason, ifVersion: readVersion(input) },
      (letter, mover) => this.prepareEdit(letter, edit, mover),
      (letter) => removeUnusedEdit(this.#options.store, letter),
    )
  }

  /** The change that an edit makes to a letter, once the present values are saved. */
  async prepareEdit(letter: DeadLetter, edit: ReadEdit, mover: moves.Mover): Promise<moves.Change> {
    const values = this.editedValues(letter, edit)
    await saveEdit(this.#options.store, letter, readCurrentValues(letter, values, mover))
    return moves.edit(letter, mover, values)
  }

  /** The values that an edit gives to a letter. Throws INVALID_INPUT if a rule refuses them. */
  editedValues(letter: DeadLetter, edit: ReadEdit): moves.Edit {
    const { payload: given, patch, ...edited } = edit
    const { maxPayloadBytes, repairRulesFor } = this.#options
    const redaction = this.#options.redactionFor?.(letter.queue)
    checkDecrypted(letter)
    checkNotErased(letter, 'be edited')
    if (redaction) checkNoMark(edit)
    const payload = patch ? patchPayload(letter.payload, patch, maxPayloadBytes) : given
    if (payload) checkSize(payload, letter.queue, maxPayloadBytes)
    const values: moves.Edit = {
      ...(payload ? { payload: { ...payload, version: letter.payload.version + 1 } } : {}),
      ...edited,
    }
    const refusal = whyEditRefused(letter, values, repairRulesFor(letter.queue))
    if (refusal !== undefined) throw new RedriveError('INVALID_INPUT', refusal)
    return redactEdit(letter, values, redaction)
  }

  /** Undoes the newest edit. The payload gets a new version with its previous bytes. */
  async undoEdit(id: string, by: string, options: ActionOptions): Promise<DeadLetter> {
    const { store } = this.#options
    const ifVersion = readActionOptions(options)
    const newest = await findNewestEdit(store, id)
    if (!newest) throw new RedriveError('INVALID_INPUT', `letter ${id} has no edit to undo`)
    const letter = await this.#act(
      { id, move: 'edit', action: 'undo-edit', by, note: undoNote, ifVersion },
      (current, mover) => {
        checkDecrypted(current)
        checkNotErased(current, 'be edited')
        return moves.edit(current, mover, createUndoEdit(current, newest.value))
      },
    )
    await removeEdit(store, newest.id)
    return letter
  }

  async remove(id: string, by: string, options: ActionOptions = {}): Promise<DeadLetter> {
    const actor = checkBy(by)
    const ifVersion = readActionOptions(options)
    return this.#audit({ id, move: 'remove', by: actor }, async (describe) => {
      const letter = await this.#remove(id, actor, ifVersion)
      describe({ before: describeLetter(letter) })
      return letter
    })
  }

  async #remove(id: string, actor: string, ifVersion?: number): Promise<DeadLetter> {
    const { store, hub } = this.#options
    const letter = await loadLetter(this.#options.store, id, ifVersion)
    this.#checkMove('remove', letter)
    const isArchived =
      ifVersion === undefined || (await archiveForRemoval(this.#options, letter, actor))
    const same = ifVersion === undefined ? {} : { state: 'archived' as const }
    if (!isArchived || (await store.remove({ ids: [id], ...same })) === 0)
      throw new RedriveError(
        'VERSION_CONFLICT',
        `letter ${id} was claimed, changed or removed by someone else: read it again`,
      )
    hub.emit({ type: 'removed', count: 1, by: actor, letter })
    // If this fails, the sweep removes the rest.
    await removeEdits(store, id)
    return letter
  }

  /**
   * Removes a letter for a program, without an entry in the audit log, if the letter exists.
   * Rejects with ILLEGAL_MOVE while it runs: try again later.
   */
  async forget(id: string, by: string): Promise<boolean> {
    const [letter] = await this.#options.store.get([id])
    if (!letter) return false
    await this.#remove(id, by)
    return true
  }

  /** Removes all matching letters if their number is `confirm`. Running letters stay. */
  async clear(filter: LetterFilter, confirm: number, by: string): Promise<number> {
    checkRemoval(filter)
    const actor = checkBy(by)
    const what = { kind: 'letters', id: toCanonicalJson(filter) } as const
    return this.#options.audit.act({ action: 'clear', what, actor }, async (describe) => {
      const removed = await clearLetters(this.#options, filter, confirm, actor)
      describe({ after: { removed } })
      return removed
    })
  }

  /** Performs an action on a letter, with its entries in the audit log. */
  #audit<T>(
    { id, move, action = move === 'reschedule' ? 'fail' : move, by, note }: LetterAct,
    perform: (describe: Describe) => Promise<T>,
  ): Promise<T> {
    const what = { kind: 'letter', id } as const
    return this.#options.audit.act({ action, what, actor: by, reason: note }, perform)
  }

  async #act(
    given: LetterAct,
    decide: (letter: DeadLetter, mover: moves.Mover) => moves.Change | Promise<moves.Change>,
    onConflict?: (letter: DeadLetter) => Promise<void>,
  ): Promise<DeadLetter> {
    const { hub, onFailedRun } = this.#options
    const act = checkAct(given)
    return this.#audit(act, async (describe) => {
      const { letter, change, now } = await this.#change(act, decide, onConflict)
      describe(describeEdit(letter, now))
      if (change.set.failure) onFailedRun?.(letter, change)
      hub.emitChange(now, change)
      return now
    })
  }

  async #change(
    { id, move, by: actor, note, ifVersion }: LetterAct,
    decide: (letter: DeadLetter, mover: moves.Mover) => moves.Change | Promise<moves.Change>,
    onConflict?: (letter: DeadLetter) => Promise<void>,
  ): Promise<{ letter: DeadLetter; change: moves.Change; now: DeadLetter }> {
    const { store, clock } = this.#options
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const letter = await loadLetter(this.#options.store, id, ifVersion)
      this.#checkMove(move, letter)
      const at = toTimestamp(clock.now())
      const change = await decide(letter, {
        at,
        actor,
        guard: 'version',
        ...(note === undefined ? {} : { note: this.#redactNote(letter.queue, note) }),
      })
      const [result] = await store.apply([change])
      if (result === 'written') return { letter, change, now: moves.withChange(letter, change) }
      await onConflict?.(letter)
    }
    throw new RedriveError(
      'VERSION_CONFLICT',
      `letter ${id} kept changing during the action: read it and try again`,
    )
  }

  #redactNote(queue: string, note: string): string {
    const redaction = this.#options.redactionFor?.(queue)
    return redaction?.atCapture ? redaction.text(note) : note
  }

  #checkMove(move: Move, letter: DeadLetter): void {
    if (isLegal(move, letter.state)) return
    const from = moveTable[move].from.join(', ')
    throw new RedriveError(
      'ILLEGAL_MOVE',
      `letter ${letter.id} is ${letter.state}: ${move} is possible when it is ${from}`,
    )
  }
}
