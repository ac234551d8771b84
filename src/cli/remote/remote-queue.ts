import type { LetterReplayOptions, RetryOptions, ReviewInput } from '../../admin/action-input.ts'
import type { BacktestInput } from '../../admin/backtest.ts'
import type { EditInput } from '../../admin/edit-input.ts'
import type { Erasure, EraseOptions } from '../../admin/erasure.ts'
import type { Health } from '../../admin/health.ts'
import type { LineageLetter } from '../../admin/lineage.ts'
import type { Metrics } from '../../admin/metrics.ts'
import type { QueuesQuery, QueueSummary } from '../../admin/queue-list.ts'
import type { Statistics } from '../../admin/statistics.ts'
import { waitForRun } from '../../admin/wait-for-run.ts'
import type { Client } from '../../api/client.ts'
import type { InputOf } from '../../api/endpoints.ts'
import type { BulkActionView } from '../../api/schemas/bulk.ts'
import type { LetterView } from '../../api/schemas/letter.ts'
import type { ResultsQuery } from '../../bulk/bulk.ts'
import type { PlanOptions, UndoOptions } from '../../bulk/plan-options.ts'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { AuditEntry, AuditPosition, AuditQuery, AuditReport } from '../../letter/audit.ts'
import type { BulkAction, BulkResult, FilterActionName } from '../../letter/bulk-action.ts'
import type {
  Group,
  GroupDetail,
  GroupExplanation,
  GroupQuery,
  IgnoreGroupOptions,
  ResolveGroupOptions,
} from '../../letter/group.ts'
import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import type { PausedQueue } from '../../letter/paused-queue.ts'
import type { PayloadDiff } from '../../letter/payload-diff.ts'
import type { LetterFilter, Page } from '../../letter/query.ts'
import type { AlertDelivery } from '../../observers/alerts/alerts.ts'
import type { AlertChange } from '../../observers/alerts/change.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import type { BacktestReport } from '../../policy/backtest.ts'
import type { LiveWorker } from '../../redelivery/live-workers.ts'
import type { SearchOptions } from '../../store.ts'
import type { QueueAccess } from '../queue-access.ts'
import { toLetter } from './letter-view.ts'
import { isNotFound } from './problem-code.ts'

/** How often a letter is read while a command waits for its run. */
const pollMs = 1000
const auditPage = 1000

/**
 * The queue of a server, through its API. Methods are those of `DeadLetterQueue`; names of people
 * are those of the token, so that `by` is ignored.
 */
export class RemoteQueue implements QueueAccess {
  readonly #client: Client
  readonly #clock: Clock

  constructor(client: Client, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  // letters

  async retry(
    id: string,
    _by?: string,
    { at, wait, signal }: RetryOptions = {},
  ): Promise<DeadLetter> {
    const due = at === undefined ? {} : { at: toText(at) }
    const letter = toLetter(await this.#client.retryLetter({ id, ...due }))
    if (!wait) return letter
    const read = async (): Promise<DeadLetter[]> => [toLetter(await this.#client.getLetter({ id }))]
    const hub = { on: () => () => {} }
    return waitForRun(letter, { store: { get: read }, clock: this.#clock, hub, pollMs, signal })
  }

  async replay(id: string, _by?: string, { to }: LetterReplayOptions = {}): Promise<DeadLetter> {
    if (typeof to === 'object')
      throw new RedriveError('INVALID_INPUT', 'a server replays to a mailbox by its name only')
    return toLetter(await this.#client.replayLetter({ id, ...(to === undefined ? {} : { to }) }))
  }

  resolve(id: string): Promise<DeadLetter> {
    return this.#letter(this.#client.resolveLetter({ id }))
  }

  fail(id: string, error: unknown): Promise<DeadLetter> {
    return this.#letter(this.#client.failLetter({ id, error: error as FailInput }))
  }

  park(id: string, note?: string): Promise<DeadLetter> {
    return this.#letter(this.#client.parkLetter({ id, note }))
  }

  review(id: string, { decision, note }: ReviewInput): Promise<DeadLetter> {
    return this.#letter(this.#client.reviewLetter({ id, decision, note }))
  }

  note(id: string, text: string): Promise<DeadLetter> {
    return this.#letter(this.#client.noteLetter({ id, text }))
  }

  edit(id: string, input: EditInput): Promise<DeadLetter> {
    const { by: _, ifVersion, payload, ...edit } = input
    const text = payload === undefined ? {} : { text: payload as string }
    const options = ifVersion === undefined ? {} : { ifVersion }
    return this.#letter(this.#client.editLetter({ id, ...edit, ...text } as EditBody, options))
  }

  undoEdit(id: string): Promise<DeadLetter> {
    return this.#letter(this.#client.undoEdit({ id }))
  }

  archive(id: string): Promise<DeadLetter> {
    return this.#letter(this.#client.archiveLetter({ id }))
  }

  restore(id: string): Promise<DeadLetter> {
    return this.#letter(this.#client.restoreLetter({ id }))
  }

  remove(id: string): Promise<DeadLetter> {
    return this.#letter(this.#client.removeLetter({ id }))
  }

  diff(id: string, from?: number, to?: number): Promise<PayloadDiff> {
    return this.#client.diffPayloads({ id, from, to })
  }

  lineage(id: string): Promise<LineageLetter[]> {
    return this.#client.getLineage({ id })
  }

  async search(
    words: string,
    { among = {}, payload, limit }: SearchOptions = {},
  ): Promise<LetterSummary[]> {
    return this.#client.searchLetters({ ...among, words, payload, limit })
  }

  // bulk actions

  plan(
    action: FilterActionName,
    filter: LetterFilter,
    options: PlanOptions = {},
  ): Promise<BulkAction> {
    const { by: _, ...rest } = options
    const input = { action, filter, ...withTextTimes(rest) } as InputOf<'planBulkAction'>
    return toBulkAction(this.#client.planBulkAction(input))
  }

  planUndo(id: string, options: UndoOptions): Promise<BulkAction> {
    const { by: _, ...rest } = options
    const input = { id, ...withTextTimes(rest) } as InputOf<'planBulkUndo'>
    return toBulkAction(this.#client.planBulkUndo(input))
  }

  approve(id: string): Promise<BulkAction> {
    return toBulkAction(this.#client.approveBulkAction({ id }))
  }

  run(id: string): Promise<BulkAction> {
    return toBulkAction(this.#client.runBulkAction({ id }))
  }

  pause(id: string): Promise<BulkAction> {
    return toBulkAction(this.#client.pauseBulkAction({ id }))
  }

  resume(id: string): Promise<BulkAction> {
    return toBulkAction(this.#client.resumeBulkAction({ id }))
  }

  cancel(id: string): Promise<BulkAction> {
    return toBulkAction(this.#client.cancelBulkAction({ id }))
  }

  results(id: string, query: ResultsQuery = {}): Promise<Page<BulkResult>> {
    return this.#client.getBulkResults({ id, ...query })
  }

  bulkAction(id: string): Promise<BulkAction> {
    return toBulkAction(this.#client.getBulkAction({ id }))
  }

  async bulkActions(
    limit = 20,
    matches: (action: BulkAction) => boolean = () => true,
  ): Promise<BulkAction[]> {
    const actions = (await this.#client.listBulkActions({ limit })) as BulkAction[]
    return actions.filter(matches)
  }

  /** The server and its workers run bulk actions. */
  start(): void {}

  // groups

  groups(query: GroupQuery = {}): Promise<Page<Group>> {
    const { within: _, limit = 20, ...rest } = query
    const input = { ...rest, limit: Math.min(limit, maxGroups) } as InputOf<'listGroups'>
    return this.#client.listGroups(input)
  }

  async group(fingerprint: string): Promise<GroupDetail | undefined> {
    try {
      return await this.#client.getGroup({ fingerprint })
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  explainGroup(id: string): Promise<GroupExplanation> {
    return this.#client.explainGroup({ id })
  }

  resolveGroup(
    fingerprint: string,
    _by: string,
    options: ResolveGroupOptions = {},
  ): Promise<GroupDetail> {
    return this.#client.resolveGroup({ fingerprint, ...options })
  }

  ignoreGroup(
    fingerprint: string,
    _by: string,
    options: IgnoreGroupOptions = {},
  ): Promise<GroupDetail> {
    const input = { fingerprint, ...options } as InputOf<'ignoreGroup'>
    return this.#client.ignoreGroup(input)
  }

  reopenGroup(fingerprint: string): Promise<GroupDetail> {
    return this.#client.reopenGroup({ fingerprint })
  }

  assignGroup(fingerprint: string, _by: string, assignee: string | null): Promise<GroupDetail> {
    return this.#client.assignGroup({ fingerprint, assignee })
  }

  noteGroup(fingerprint: string, _by: string, text: string): Promise<GroupDetail> {
    return this.#client.noteGroup({ fingerprint, text })
  }

  mergeGroups(fingerprint: string, others: readonly string[]): Promise<GroupDetail> {
    return this.#client.mergeGroups({ fingerprint, others: [...others] })
  }

  splitGroup(fingerprint: string): Promise<GroupDetail> {
    return this.#client.splitGroup({ fingerprint })
  }

  // queues and reports

  queues(query: QueuesQuery = {}): Promise<Page<QueueSummary>> {
    return this.#client.listQueues(query)
  }

  pauseQueue(queue: string, _by: string, reason: string): Promise<PausedQueue> {
    return this.#client.pauseQueue({ queue, reason })
  }

  async resumeQueue(queue: string): Promise<boolean> {
    return (await this.#client.resumeQueue({ queue })).resumed
  }

  pausedQueues(): Promise<PausedQueue[]> {
    return this.#client.listPausedQueues()
  }

  stats(): Promise<Statistics> {
    return this.#client.getStatistics()
  }

  metrics(): Promise<Metrics> {
    return this.#client.getMetrics()
  }

  health(): Promise<Health> {
    return this.#client.getHealth()
  }

  workers(): Promise<(LiveWorker & { paused: string[] })[]> {
    return this.#client.listWorkers()
  }

  backtest(input: BacktestInput, filter: LetterFilter = {}): Promise<BacktestReport> {
    return this.#client.backtest({ ...input, filter } as InputOf<'backtest'>)
  }

  alerts(): Promise<Alert[]> {
    return this.#client.listAlerts()
  }

  alertHistory(limit?: number): Promise<AlertChange[]> {
    return this.#client.listAlertHistory({ limit })
  }

  alertDeliveries(limit?: number): Promise<AlertDelivery[]> {
    return this.#client.listAlertDeliveries({ limit })
  }

  acknowledgeAlert(name: string, _by: string, note?: string): Promise<Alert> {
    return this.#client.acknowledgeAlert({ name, ...(note === undefined ? {} : { note }) })
  }

  // audit log and privacy

  audit(query: AuditQuery = {}): Promise<Page<AuditEntry>> {
    return this.#client.listAudit(query)
  }

  verifyAudit(expected?: AuditPosition): Promise<AuditReport> {
    return this.#client.verifyAudit(expected ?? {})
  }

  async *exportAudit(): AsyncGenerator<string> {
    const query = { order: 'oldest', limit: auditPage } as const
    let page = await this.#client.listAudit(query)
    for (;;) {
      for (const entry of page.items) yield `${JSON.stringify(entry)}\n`
      if (page.cursor === undefined) return
      page = await this.#client.listAudit({ ...query, cursor: page.cursor })
    }
  }

  eraseSubject(subject: string, { reason }: EraseOptions): Promise<Erasure> {
    return this.#client.eraseSubject({ subject, reason })
  }

  async #letter(view: Promise<LetterView>): Promise<DeadLetter> {
    return toLetter(await view)
  }
}

/** An absent field and an undefined one are the same in JSON, but not in the types. */
function toBulkAction(view: Promise<BulkActionView>): Promise<BulkAction> {
  return view as Promise<BulkAction>
}

type EditBody = InputOf<'editLetter'>
type FailInput = InputOf<'failLetter'>['error']

/** The largest page of groups of the API. */
const maxGroups = 100

function toText(at: string | Date): string {
  return typeof at === 'string' ? at : at.toISOString()
}

/** Times of a plan as text. */
function withTextTimes({ at, startAt, ...options }: PlanOptions): object {
  return {
    ...options,
    ...(at === undefined ? {} : { at: toText(at) }),
    ...(startAt === undefined ? {} : { startAt: toText(startAt) }),
  }
}
