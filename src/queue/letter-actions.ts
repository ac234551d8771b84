import type {
  ActionOptions,
  LetterReplayOptions,
  RetryOptions,
  ReviewInput,
} from '../admin/action-input.ts'
import type { EditInput } from '../admin/edit-input.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { QueueInspection } from './inspection.ts'

/**
 * The actions of people on one letter. With `ifVersion`, an action happens only if the
 * letter still has the version that its caller has read. A replay publishes before it is recorded,
 * so that two replays at the same moment may both publish.
 */
export class LetterActions extends QueueInspection {
  /**
   * Makes the letter due now, or at `at`; a settled letter gets a fresh retry budget. With
   * `wait: true` it resolves after the next run, in any process, with the letter after it; `signal`
   * aborts the wait.
   */
  retry(id: string, by = 'operator', options: RetryOptions = {}): Promise<DeadLetter> {
    return this.parts.admin.retry(id, by, options)
  }

  /**
   * Publishes the letter as it is now to its source, a mailbox or a topic, with its headers and its
   * lineage, and resolves it, with `confirmReplayMs` later. If the message fails there, it becomes
   * another letter with one more replay. At `maxReplays` the letter is parked with the reason
   * `replay-limit`. The message is published first and recorded then: a crash in between can
   * publish it twice but never loses it. Rejects with NO_ROUTE if the source has no address or is
   * unknown to this process.
   */
  replay(id: string, by = 'operator', options: LetterReplayOptions = {}): Promise<DeadLetter> {
    return this.parts.admin.replay(id, by, options)
  }

  resolve(id: string, by = 'operator', options: ActionOptions = {}): Promise<DeadLetter> {
    return this.parts.admin.resolve(id, by, options)
  }

  /** Reports a failed run that happened elsewhere. It counts like a run of a handler. */
  fail(
    id: string,
    error: unknown,
    by = 'operator',
    options: ActionOptions = {},
  ): Promise<DeadLetter> {
    return this.parts.admin.fail(id, error, by, options)
  }

  /** Parks the letter for review. */
  park(
    id: string,
    note?: string,
    by = 'operator',
    options: ActionOptions = {},
  ): Promise<DeadLetter> {
    return this.parts.admin.park(id, note, by, options)
  }

  review(id: string, decision: ReviewInput): Promise<DeadLetter> {
    return this.parts.admin.review(id, decision)
  }

  /**
   * Adds a note to the history of the letter, in any state, also while it runs. A note has at most
   * 4,000 characters. Like every entry, it can be dropped from the middle of a long history.
   */
  note(
    id: string,
    text: string,
    by = 'operator',
    options: ActionOptions = {},
  ): Promise<DeadLetter> {
    return this.parts.admin.note(id, text, by, options)
  }

  edit(id: string, edit: EditInput): Promise<DeadLetter> {
    return this.parts.admin.edit(id, edit)
  }

  undoEdit(id: string, by = 'operator', options: ActionOptions = {}): Promise<DeadLetter> {
    return this.parts.admin.undoEdit(id, by, options)
  }

  archive(id: string, by = 'operator', options: ActionOptions = {}): Promise<DeadLetter> {
    return this.parts.admin.archive(id, by, options)
  }

  restore(id: string, by = 'operator', options: ActionOptions = {}): Promise<DeadLetter> {
    return this.parts.admin.restore(id, by, options)
  }

  /** Removes the letter permanently and returns it. */
  remove(id: string, by = 'operator', options: ActionOptions = {}): Promise<DeadLetter> {
    return this.parts.admin.remove(id, by, options)
  }
}
