import type {
  ActionOptions,
  LetterReplayOptions,
  RetryOptions,
  ReviewInput,
} from '../admin/action-input.ts'
import type { EditInput } from '../admin/edit-input.ts'
import type { ResultsQuery } from '../bulk/bulk.ts'
import type { PlanOptions, UndoOptions } from '../bulk/plan-options.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import type { BulkAction, BulkResult, FilterActionName } from '../letter/bulk-action.ts'
import type { GroupDetail, IgnoreGroupOptions, ResolveGroupOptions } from '../letter/group.ts'
import type { DeadLetter } from '../letter/letter.ts'
import type { PausedQueue } from '../letter/paused-queue.ts'
import type { LetterFilter, Page } from '../letter/query.ts'
import { everything } from '../transfer/copy/batches.ts'
import { exportLines, type ExportOptions } from '../transfer/lines/export.ts'
import {
  importLines,
  type LetterImportOptions,
  type LetterImportReport,
} from '../transfer/lines/import.ts'
import type { Chunks } from '../transfer/lines/split.ts'
import { exportOperationFile } from '../transfer/operation-file/export.ts'
import { importOperationFile, type ImportReport } from '../transfer/operation-file/import.ts'
import { QueueInspection } from './inspection.ts'

export interface ClearOptions {
  /** The number of matching letters, as a safeguard: any other number is rejected. */
  confirm: number
  /** Name of the person who clears. Default: operator. */
  by?: string
}

const clearKeys = keysOf<ClearOptions>({ confirm: true, by: true })

/**
 * The actions of people on letters. With `ifVersion`, an action on one letter happens only if the
 * letter still has the version that its caller has read. A replay publishes before it is recorded,
 * so that two replays at the same moment may both publish.
 */
export class QueueActions extends QueueInspection {
  // actions on one letter

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

  /**
   * Removes all matching letters that do not run. `confirm` must be their number, as a safeguard.
   */
  async clear(filter: LetterFilter, options: ClearOptions): Promise<number> {
    checkKeys('clear options', options, clearKeys)
    const all = await this.parts.groups.expand(filter)
    return this.parts.admin.clear(all, options.confirm, options.by ?? 'operator')
  }

  // actions on many letters

  /**
   * Plans an action on all letters that match now, and changes nothing. The plan has the number of
   * letters, a sample, and the letters for which the action is not possible. `run` executes it.
   * Letters that change before it acts on them are skipped.
   */
  async plan(
    action: FilterActionName,
    filter: LetterFilter,
    options: PlanOptions = {},
  ): Promise<BulkAction> {
    return this.parts.bulk.plan(action, await this.parts.groups.expand(filter), options)
  }

  /**
   * Plans to undo a bulk edit: each letter that it changed gets the payload from before it. A
   * letter whose payload was changed again, or that cannot be edited now, is not part of the plan.
   * `by` and `reason` are required.
   */
  planUndo(editId: string, options: UndoOptions): Promise<BulkAction> {
    return this.parts.bulk.planUndo(editId, options)
  }

  /** Approves a plan of another person, if the option `approval` requires it. */
  approve(actionId: string, by: string): Promise<BulkAction> {
    return this.parts.bulk.approve(actionId, by)
  }

  /** Starts a planned action. Any process that has called `start()` on this store may run it. */
  run(actionId: string): Promise<BulkAction> {
    return this.parts.bulk.run(actionId)
  }

  /** Acts on no further letters until `resume`. Letters that were retried still run. */
  pause(actionId: string): Promise<BulkAction> {
    return this.parts.bulk.pause(actionId)
  }

  /** Continues a paused action, or one that its canary stopped. */
  resume(actionId: string): Promise<BulkAction> {
    return this.parts.bulk.resume(actionId)
  }

  /** Ends an action for good. What it has done stays done. */
  cancel(actionId: string): Promise<BulkAction> {
    return this.parts.bulk.cancel(actionId)
  }

  /** What an action did to each letter, in the order in which it acts on them. */
  results(actionId: string, query: ResultsQuery = {}): Promise<Page<BulkResult>> {
    return this.parts.bulk.results(actionId, query)
  }

  bulkAction(actionId: string): Promise<BulkAction> {
    return this.parts.bulk.get(actionId)
  }

  /** The latest bulk actions, the newest first. */
  bulkActions(limit = 20): Promise<BulkAction[]> {
    return this.parts.bulk.list(limit)
  }

  // queues

  /**
   * Pauses a queue for all workers of the store: this process claims none of its letters from now
   * on, others after `pollMs` at the latest. Handlers that run may finish, and failures are still
   * captured. The queue need not have letters yet. A paused queue gets the new reason.
   */
  pauseQueue(queue: string, by: string, reason: string): Promise<PausedQueue> {
    return this.parts.pausedQueues.pause(queue, by, reason)
  }

  /** Lets a paused queue run again. Resolves with false if it was not paused. */
  resumeQueue(queue: string, by: string): Promise<boolean> {
    return this.parts.pausedQueues.resume(queue, by)
  }

  // export and import

  /**
   * Exports matching letters losslessly as JSON Lines, oldest first: each string is one line with
   * its line break. Lines are produced as they are taken, so a store of any size can be exported.
   * Default: all letters, also archived ones.
   */
  async *exportLetters(
    filter: LetterFilter = everything,
    options: ExportOptions = {},
  ): AsyncGenerator<string> {
    const { store, groups, capture } = this.parts
    yield* exportLines(store, capture.clock, await groups.expand(filter), options)
  }

  /**
   * Imports the lines of an export, in chunks of any size. Every line is checked before its letter
   * reaches the store. A letter that the store has in the same version or a higher one stays.
   */
  importLetters(lines: Chunks, options: LetterImportOptions = {}): Promise<LetterImportReport> {
    return importLines(this.parts.store, lines, options)
  }

  // actions on groups

  /**
   * The cause is fixed, in this version of the application if given. The group becomes `regressed`
   * when it is seen again in that version or a later one, or without a version at all. Letters do
   * not change.
   */
  resolveGroup(
    fingerprint: string,
    by: string,
    options: ResolveGroupOptions = {},
  ): Promise<GroupDetail> {
    return this.parts.groups.resolve(fingerprint, by, options)
  }

  /**
   * Ignores the group until a time, until so many further failures, or until so many failures in an
   * hour, whatever comes first. Without a limit: until `reopenGroup`.
   */
  ignoreGroup(
    fingerprint: string,
    by: string,
    options: IgnoreGroupOptions = {},
  ): Promise<GroupDetail> {
    return this.parts.groups.ignore(fingerprint, by, options)
  }

  reopenGroup(fingerprint: string, by: string): Promise<GroupDetail> {
    return this.parts.groups.reopen(fingerprint, by)
  }

  /** Assigns the group to a person; null: to nobody. */
  assignGroup(fingerprint: string, by: string, assignee: string | null): Promise<GroupDetail> {
    return this.parts.groups.assign(fingerprint, by, assignee)
  }

  noteGroup(fingerprint: string, by: string, text: string): Promise<GroupDetail> {
    return this.parts.groups.note(fingerprint, by, text)
  }

  /**
   * Makes one group of several, also for later letters. Letters keep their fingerprints; a filter
   * by one of them finds the letters of all.
   */
  mergeGroups(into: string, others: readonly string[], by: string): Promise<GroupDetail> {
    return this.parts.groups.merge(into, others, by)
  }

  /** Undoes the merge of this fingerprint. */
  splitGroup(fingerprint: string, by: string): Promise<GroupDetail> {
    return this.parts.groups.split(fingerprint, by)
  }

  // operation files

  /**
   * Imports a JSON file of operations that another queue wrote. Importing it again adds nothing.
   */
  importOperations(text: string): Promise<ImportReport> {
    return importOperationFile(this.parts.store, text, this.parts.capacity)
  }

  /** Exports all matching letters as such a file. Default: all letters, also archived ones. */
  async exportOperations(filter: LetterFilter = everything): Promise<string> {
    return exportOperationFile(this.parts.store, await this.parts.groups.expand(filter))
  }
}
