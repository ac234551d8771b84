import { eraseSubject, type EraseOptions, type Erasure } from '../admin/erasure.ts'
import type { ActDetails, AuditedAct, DeniedCall, PruneOptions } from '../admin/audit/audit-log.ts'
import type { Bulk, ResultsQuery } from '../bulk/bulk.ts'
import type { PlanOptions, UndoOptions } from '../bulk/plan-options.ts'
import { checkFilter } from '../check/filter.ts'
import { checkKeys, checkObject, keysOf } from '../check/keys.ts'
import type { Groups } from '../groups/groups.ts'
import type { AuditAction, AuditSubject } from '../letter/audit.ts'
import type { BulkAction, BulkResult, FilterActionName } from '../letter/bulk-action.ts'
import { toCanonicalJson } from '../letter/canonical-json.ts'
import type { GroupDetail, IgnoreGroupOptions, ResolveGroupOptions } from '../letter/group.ts'
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
import type { TargetTest } from '../observers/alerts/alerts.ts'
import type { Alert } from '../policy/alert-rule.ts'
import type { KeyRotation, RotateOptions } from '../store.ts'
import { noEncryption } from './inspection.ts'
import { LetterActions } from './letter-actions.ts'

export interface ClearOptions {
  /** The number of matching letters, as a safeguard: any other number is rejected. */
  confirm: number
  /** Name of the person who clears. Default: operator. */
  by?: string
}

const rotateKeysOf = keysOf<RotateOptions>({ onProgress: true, signal: true })
const clearKeys = keysOf<ClearOptions>({ confirm: true, by: true })

/** The actions of people on many letters, on queues and on groups. */
export class QueueActions extends LetterActions {
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
    const { bulk, groups } = this.parts
    checkFilter(filter)
    checkObject('plan options', options)
    const { by, reason } = options
    const what = { kind: 'letters', id: toCanonicalJson(filter) } as const
    return this.#audit({ action: 'bulk-plan', what, actor: by, reason }, async (describe) => {
      const plan = await bulk.plan(action, await groups.expand(filter), options)
      const after = { action, count: plan.count, state: plan.state }
      describe({ what: { kind: 'bulk-action', id: plan.id }, after })
      return plan
    })
  }

  /**
   * Plans to undo a bulk edit: each letter that it changed gets the payload from before it. A
   * letter whose payload was changed again, or that cannot be edited now, is not part of the plan.
   * `by` and `reason` are required.
   */
  async planUndo(editId: string, options: UndoOptions): Promise<BulkAction> {
    checkObject('plan options', options)
    const { by, reason } = options
    const what = { kind: 'bulk-action', id: editId } as const
    return this.#audit({ action: 'bulk-plan', what, actor: by, reason }, async (describe) => {
      const plan = await this.parts.bulk.planUndo(editId, options)
      const after = { action: plan.action, count: plan.count, state: plan.state }
      describe({ what: { kind: 'bulk-action', id: plan.id }, after })
      return plan
    })
  }

  /** Approves a plan of another person, if the option `approval` requires it. */
  approve(actionId: string, by: string): Promise<BulkAction> {
    return this.#onBulk('bulk-approve', actionId, by, (bulk) => bulk.approve(actionId, by))
  }

  /** Starts a planned action. Any process that has called `start()` on this store may run it. */
  run(actionId: string, by?: string): Promise<BulkAction> {
    return this.#onBulk('bulk-run', actionId, by, (bulk) => bulk.run(actionId))
  }

  /** Acts on no further letters until `resume`. Letters that were retried still run. */
  pause(actionId: string, by?: string): Promise<BulkAction> {
    return this.#onBulk('bulk-pause', actionId, by, (bulk) => bulk.pause(actionId))
  }

  /** Continues a paused action, or one that its canary stopped. */
  resume(actionId: string, by?: string): Promise<BulkAction> {
    return this.#onBulk('bulk-resume', actionId, by, (bulk) => bulk.resume(actionId))
  }

  /** Ends an action for good. What it has done stays done. */
  cancel(actionId: string, by?: string): Promise<BulkAction> {
    return this.#onBulk('bulk-cancel', actionId, by, (bulk) => bulk.cancel(actionId))
  }

  /** What an action did to each letter, in the order in which it acts on them. */
  results(actionId: string, query: ResultsQuery = {}): Promise<Page<BulkResult>> {
    return this.parts.bulk.results(actionId, query)
  }

  bulkAction(actionId: string): Promise<BulkAction> {
    return this.parts.bulk.get(actionId)
  }

  /** The latest bulk actions that match, the newest first. Default: all match. */
  bulkActions(
    limit = 20,
    matches: (action: BulkAction) => boolean = () => true,
  ): Promise<BulkAction[]> {
    return this.parts.bulk.list(limit, matches)
  }

  /** The bulk actions that workers run, or would run if they were not paused or stopped. */
  activeBulkActions(): Promise<BulkAction[]> {
    return this.parts.bulk.active()
  }

  /** The bulk actions with these ids. Unknown ids are left out. */
  bulkActionsById(ids: readonly string[]): Promise<BulkAction[]> {
    return this.parts.bulk.byIds(ids)
  }

  // queues

  /**
   * Pauses a queue for all workers of the store: this process claims none of its letters from now
   * on, others after `pollMs` at the latest. Handlers that run may finish, and failures are still
   * captured. The queue need not have letters yet. A paused queue gets the new reason.
   */
  pauseQueue(queue: string, by: string, reason: string): Promise<PausedQueue> {
    const act = { action: 'queue-pause', actor: by, reason } as const
    return this.#onQueue(act, queue, () => this.parts.pausedQueues.pause(queue, by, reason))
  }

  /** Lets a paused queue run again. Resolves with false if it was not paused. */
  resumeQueue(queue: string, by: string): Promise<boolean> {
    const act = { action: 'queue-resume', actor: by } as const
    return this.#onQueue(act, queue, () => this.parts.pausedQueues.resume(queue, by))
  }

  /**
   * Encrypts all letters and saved edits with the current key that use another key or none. Other
   * processes may use the store meanwhile. An interrupted rotation is continued by another one.
   */
  async rotateKeys(options: RotateOptions = {}): Promise<KeyRotation> {
    checkKeys('rotateKeys options', options, rotateKeysOf)
    const { rotateKeys } = this.parts.store
    if (!rotateKeys) throw noEncryption()
    const what = { kind: 'store', id: 'encryption keys' } as const
    return this.#audit({ action: 'keys-rotate', what }, async (describe) => {
      const rotation = await rotateKeys(options)
      describe({ after: { ...rotation } })
      return rotation
    })
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
    const { store } = this.parts
    if (options?.verifyOnly) return importLines(store, lines, options)
    return this.#onImport('letters', () => importLines(store, lines, options))
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
    return this.#onGroup('group-resolve', fingerprint, by, (groups) =>
      groups.resolve(fingerprint, by, options),
    )
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
    return this.#onGroup('group-ignore', fingerprint, by, (groups) =>
      groups.ignore(fingerprint, by, options),
    )
  }

  reopenGroup(fingerprint: string, by: string): Promise<GroupDetail> {
    return this.#onGroup('group-reopen', fingerprint, by, (groups) =>
      groups.reopen(fingerprint, by),
    )
  }

  /** Assigns the group to a person; null: to nobody. */
  assignGroup(fingerprint: string, by: string, assignee: string | null): Promise<GroupDetail> {
    return this.#onGroup('group-assign', fingerprint, by, (groups) =>
      groups.assign(fingerprint, by, assignee),
    )
  }

  noteGroup(fingerprint: string, by: string, text: string): Promise<GroupDetail> {
    return this.#onGroup(
      'group-note',
      fingerprint,
      by,
      (groups) => groups.note(fingerprint, by, text),
      text,
    )
  }

  /**
   * Makes one group of several, also for later letters. Letters keep their fingerprints; a filter
   * by one of them finds the letters of all.
   */
  mergeGroups(into: string, others: readonly string[], by: string): Promise<GroupDetail> {
    const note = `with ${[others].flat().map(String).join(', ')}`
    return this.#onGroup('group-merge', into, by, (groups) => groups.merge(into, others, by), note)
  }

  /** Undoes the merge of this fingerprint. */
  splitGroup(fingerprint: string, by: string): Promise<GroupDetail> {
    return this.#onGroup('group-split', fingerprint, by, (groups) => groups.split(fingerprint, by))
  }

  // alerts

  /** Ends the reminders of a raised alert until it clears. */
  acknowledgeAlert(name: string, by: string, note?: string): Promise<Alert> {
    const what = { kind: 'alert', id: name } as const
    return this.#audit({ action: 'alert-acknowledge', what, actor: by, reason: note }, () =>
      this.parts.alerts.acknowledge(name, by, note),
    )
  }

  /** Sends a test to a target of the option `notify`, and returns what it answered. */
  testAlertTarget(target: string): Promise<TargetTest> {
    const what = { kind: 'target', id: target } as const
    return this.#audit({ action: 'alert-test', what }, () => this.parts.alerts.test(target))
  }

  // audit log

  /**
   * Removes entries of the audit log that are older than `before`. The hash of the last one stays,
   * so that the rest can be verified.
   */
  pruneAudit(options: PruneOptions): Promise<number> {
    return this.parts.audit.prune(options)
  }

  /**
   * Records that a call of a person was denied, for a server in front of this queue. Of equal
   * calls, one a minute is recorded. Never rejects.
   */
  recordDenied(call: DeniedCall): Promise<void> {
    return this.parts.audit.deny(call)
  }

  /**
   * Erases the content of all letters about a data subject: destroys the key that could decrypt
   * them, and overwrites what is stored in plain. The letters stay, cannot run, and can be removed.
   * Rejects with SUBJECT_NOT_FOUND if there is none. Call it again if it was interrupted.
   */
  eraseSubject(subject: string, options: EraseOptions): Promise<Erasure> {
    const { store, audit, subjects, capture } = this.parts
    return eraseSubject({ store, audit, subjects, clock: capture.clock }, subject, options)
  }

  /** Records that a person sees what redaction hides, for a server in front of this queue. */
  recordReveal(what: AuditSubject, by: string): Promise<void> {
    return this.#audit({ action: 'reveal', what, actor: by }, async () => {})
  }

  // operation files

  /**
   * Imports a JSON file of operations that another queue wrote. Importing it again adds nothing.
   */
  importOperations(text: string): Promise<ImportReport> {
    const { store, capacity } = this.parts
    return this.#onImport('operations', () => importOperationFile(store, text, capacity))
  }

  /** Exports all matching letters as such a file. Default: all letters, also archived ones. */
  async exportOperations(filter: LetterFilter = everything): Promise<string> {
    return exportOperationFile(this.parts.store, await this.parts.groups.expand(filter))
  }

  #audit<T>(act: AuditedAct, perform: Perform<T>): Promise<T> {
    return this.parts.audit.act(act, perform)
  }

  #onBulk(
    action: AuditAction,
    id: string,
    actor: string | undefined,
    act: (bulk: Bulk) => Promise<BulkAction>,
  ): Promise<BulkAction> {
    const { bulk } = this.parts
    return this.#audit({ action, what: { kind: 'bulk-action', id }, actor }, async (describe) => {
      const { state } = await bulk.get(id)
      const after = await act(bulk)
      describe({ before: { state }, after: { state: after.state } })
      return after
    })
  }

  #onGroup(
    action: AuditAction,
    id: string,
    actor: string,
    act: (groups: Groups) => Promise<GroupDetail>,
    reason?: string,
  ): Promise<GroupDetail> {
    const { groups } = this.parts
    return this.#audit({ action, what: { kind: 'group', id }, actor, reason }, async (describe) => {
      const before = await groups.get(id, {})
      const after = await act(groups)
      describe({
        ...(before ? { before: describeGroup(before) } : {}),
        after: describeGroup(after),
      })
      return after
    })
  }

  #onQueue<T>(act: Omit<AuditedAct, 'what'>, id: string, change: () => Promise<T>): Promise<T> {
    const isPaused = async (): Promise<boolean> =>
      (await this.pausedQueues()).some(({ queue }) => queue === id)
    return this.#audit({ ...act, what: { kind: 'queue', id } }, async (describe) => {
      const before = { paused: await isPaused() }
      const result = await change()
      describe({ before, after: { paused: act.action === 'queue-pause' } })
      return result
    })
  }

  #onImport<R extends { added: number }>(id: string, run: () => Promise<R>): Promise<R> {
    return this.#audit({ action: 'import', what: { kind: 'store', id } }, async (describe) => {
      const report = await run()
      describe({ after: { added: report.added } })
      return report
    })
  }
}

type Perform<T> = (describe: (details: ActDetails) => void) => Promise<T>

function describeGroup({ status, assignee }: GroupDetail): { [key: string]: string } {
  return { status, ...(assignee === undefined ? {} : { assignee }) }
}
