import { runBacktest, type BacktestInput } from '../admin/backtest.ts'
import { readHealth, type Health } from '../admin/health.ts'
import { findLineage, type LineageLetter } from '../admin/lineage.ts'
import { formatSummary, metricsOf, type Metrics, type MetricsQuery } from '../admin/metrics.ts'
import { listQueues, type QueuesQuery, type QueueSummary } from '../admin/queue-list.ts'
import {
  diffVersions,
  readPayloadVersions,
  type PayloadVersion,
} from '../admin/payload-versions.ts'
import type { Store } from '../store.ts'
import {
  checkStatistics,
  readStatistics,
  type Statistics,
  type StatisticsOptions,
} from '../admin/statistics.ts'
import type { Parts } from '../assembly.ts'
import { checkQuery, checkSearch } from '../check/filter.ts'
import { checkKeys } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import type {
  FoundGroup,
  Group,
  GroupDetail,
  GroupExplanation,
  GroupQuery,
  LatestGroupChange,
} from '../letter/group.ts'
import type { AuditEntry, AuditPosition, AuditQuery, AuditReport } from '../letter/audit.ts'
import type { DeadLetter, LetterSummary, Payload } from '../letter/letter.ts'
import type { PausedQueue } from '../letter/paused-queue.ts'
import type { LetterFilter, LetterQuery, Page } from '../letter/query.ts'
import type { PayloadDiff } from '../letter/payload-diff.ts'
import type { AlertDelivery } from '../observers/alerts/alerts.ts'
import type { AlertChange } from '../observers/alerts/change.ts'
import type { QueuePolicy } from '../options/options.ts'
import { policyShape } from '../options/schema.ts'
import type { Alert } from '../policy/alert-rule.ts'
import type { BacktestReport } from '../policy/backtest.ts'
import { breakerDefaults } from '../policy/breaker.ts'
import { concurrencyDefaults } from '../policy/concurrency.ts'
import type { Redaction } from '../policy/redaction/redaction.ts'
import type { RetryLimits } from '../policy/retry-limits.ts'
import { mailboxesOf, type LiveMailbox } from '../redelivery/live-mailboxes.ts'
import { listLiveWorkers, type LiveWorker } from '../redelivery/live-workers.ts'
import type { LimiterStatus } from '../redelivery/flow/limiter.ts'
import type { KeyUse, SearchOptions } from '../store.ts'

export function noEncryption(): RedriveError {
  return new RedriveError('INVALID_CONFIG', 'this queue has no keys: set the option encryption')
}

/** What a queue knows about its letters and itself. Nothing here changes a letter. */
export class QueueInspection {
  readonly #parts: Parts

  protected constructor(parts: Parts) {
    this.#parts = parts
  }

  protected get parts(): Parts {
    return this.#parts
  }

  /** The open store, for programs that keep records of their own beside the letters. */
  get store(): Store {
    return this.parts.store
  }

  async get(id: string): Promise<DeadLetter | undefined> {
    return (await this.parts.store.get([id]))[0]
  }

  /** The payload as captured, before any edit. */
  original(id: string): Promise<Payload | undefined> {
    return this.parts.store.original(id)
  }

  /**
   * The stored versions of the payload, the oldest first: as captured, before each edit that was
   * not undone, and now.
   */
  payloads(id: string): Promise<PayloadVersion[]> {
    return readPayloadVersions(this.parts.store, id)
  }

  /**
   * What changed between two versions of the payload: values of JSON by their paths, lines of text,
   * or sizes and hashes of bytes. Default: from the version as captured to the current one. `show`
   * changes each payload before they are compared.
   */
  diff(
    id: string,
    from?: number,
    to?: number,
    show?: (payload: Payload) => Payload,
  ): Promise<PayloadDiff> {
    return diffVersions(this.parts.store, id, from, to, show)
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query?: LetterQuery): Promise<Page<LetterSummary>>
  async find(query: LetterQuery = {}): Promise<Page<DeadLetter> | Page<LetterSummary>> {
    checkQuery(query)
    return this.parts.store.find(await this.parts.groups.expand(query))
  }

  /**
   * Letters with all these words, best match first. Needs an OpenSearch store or the option
   * `search`.
   */
  async search(text: string, options: SearchOptions = {}): Promise<LetterSummary[]> {
    checkSearch(text, options)
    const { among } = options
    const inGroups = among ? { ...options, among: await this.parts.groups.expand(among) } : options
    if (this.parts.store.search) return this.parts.store.search(text, inGroups)
    throw new RedriveError(
      'INVALID_CONFIG',
      `a ${this.parts.store.powers.kind} store has no full-text search: set the option search, as in search: 'opensearch://localhost:9200', or use find({ text })`,
    )
  }

  /**
   * The letters of one original message, the oldest first: each but the first is a replay that
   * failed again. A letter that was never replayed is alone.
   */
  lineage(id: string): Promise<LineageLetter[]> {
    return findLineage(this.parts.store, id)
  }

  /**
   * What other rules, backoffs or retry limits would have done to stored letters, by group. Reads
   * the newest letters that match, and changes none.
   */
  backtest(input: BacktestInput, filter: LetterFilter = {}): Promise<BacktestReport> {
    const { store, settings, policies } = this.parts
    const { rules, backoffs: customs } = settings
    const limitsFor = (queue: string): RetryLimits => policies.of(queue)
    return runBacktest(store, { rules, customs, limitsFor }, input, filter)
  }

  /** Letters grouped by cause, the most frequent first. Counts are exact. */
  groups(query: GroupQuery = {}): Promise<Page<Group>> {
    return this.parts.groups.list(query)
  }

  /**
   * A group with its trend, the queues, tenants, hosts and versions that it affects, its notes and
   * its history. Undefined if nothing is known about it, or if it is not `within` the given queues.
   */
  group(
    fingerprint: string,
    options: Pick<GroupQuery, 'within'> = {},
  ): Promise<GroupDetail | undefined> {
    return this.parts.groups.get(fingerprint, options)
  }

  /**
   * The latest change of each group that was ever changed, and `new` for each unchanged group that
   * was first seen within the last day, by fingerprint.
   */
  latestGroupChanges(): Promise<Map<string, LatestGroupChange>> {
    return this.parts.groups.latestChanges()
  }

  /**
   * The groups of these fingerprints, each once, with all of their queues. Those that nothing is
   * known about are left out.
   */
  groupsOf(fingerprints: readonly string[]): Promise<FoundGroup[]> {
    return this.parts.groups.find(fingerprints)
  }

  /** Why a letter is in its group: the parts, frames and masked words behind its fingerprint. */
  explainGroup(letterId: string): Promise<GroupExplanation> {
    return this.parts.groups.explain(letterId)
  }

  /** Current counts. `by` adds counts by severity or source, for which every letter may be read. */
  async stats(options: StatisticsOptions = {}): Promise<Statistics> {
    checkStatistics(options)
    const { redelivery, settings } = this.parts
    const { started: running, active } = redelivery
    const processor = { running, active, pollMs: settings.pollMs }
    const statistics = await readStatistics(this.parts.store, settings.maxItems, processor, options)
    return { ...statistics, pausedQueues: await this.pausedQueues() }
  }

  /**
   * Exact counters and averages that survive restarts: over the lifetime of the store, or since an
   * earlier result that is given as `since`.
   */
  async metrics(query: MetricsQuery = {}): Promise<Metrics> {
    checkKeys('metrics query', query, ['since'])
    const metrics = metricsOf(await this.parts.store.totals(), query)
    const { spool } = this.parts.store
    return spool ? { ...metrics, spool: await spool() } : metrics
  }

  /** The metrics as a string for people. */
  async getSummary(): Promise<string> {
    return formatSummary(await this.metrics())
  }

  /** Queues that have letters or are paused, by name, with counts by state. */
  async queues(query: QueuesQuery = {}): Promise<Page<QueueSummary>> {
    return listQueues(this.parts.store, await this.pausedQueues(), query)
  }

  /** The options that are in force for a queue in this process, with defaults. */
  policyOf(queue: string): QueuePolicy {
    const settings = this.parts.policies.of(queue)
    const given = Object.entries(settings).filter(([key]) => Object.hasOwn(policyShape, key))
    const { breaker, concurrency } = settings
    return structuredClone({
      ...Object.fromEntries(given),
      breaker: breaker === false ? false : { ...breakerDefaults, ...breaker },
      concurrency: concurrency === false ? false : { ...concurrencyDefaults, ...concurrency },
    })
  }

  /**
   * Entries of the audit log: what people did, and which calls were denied. An action has an entry
   * before it (`started`) and one after it. A filter reads the log until the page is full.
   */
  audit(query: AuditQuery = {}): Promise<Page<AuditEntry>> {
    return this.parts.audit.find(query)
  }

  /**
   * Reads the whole audit log and checks its hashes. `expected` is the `head` of an earlier report
   * that you have kept elsewhere.
   */
  verifyAudit(expected?: AuditPosition): Promise<AuditReport> {
    return this.parts.audit.verify(expected)
  }

  /** The audit log as JSON Lines, the oldest entry first. */
  exportAudit(): AsyncGenerator<string> {
    return this.parts.audit.lines()
  }

  /** Queues that `pauseQueue` has paused, by name. */
  pausedQueues(): Promise<PausedQueue[]> {
    return this.parts.pausedQueues.list()
  }

  /** What is hidden of the letters of a queue (option `redact`). Undefined: nothing. */
  redaction(queue: string): Redaction | undefined {
    return this.parts.policies.redaction(queue)
  }

  /** The redaction of every queue that has one, for text that may come from any of them. */
  redactions(): Redaction[] {
    return this.parts.policies.redactions()
  }

  /** State of the flow control of each queue and dependency in this process. */
  flowControl(): LimiterStatus[] {
    return this.parts.redelivery.limiters
  }

  /**
   * The live processes on the store, by id: what they can run, what they run, and which of their
   * queues are paused.
   */
  async workers(): Promise<(LiveWorker & { paused: string[] })[]> {
    const { store, capture } = this.parts
    const paused = new Set((await this.pausedQueues()).map(({ queue }) => queue))
    const workers = await listLiveWorkers(store, capture.clock.now())
    return workers.map((worker) => ({
      ...worker,
      paused: worker.queues.filter((queue) => paused.has(queue)),
    }))
  }

  /** The mailboxes that loops of live processes receive from, by name, with these loops. */
  async mailboxes(): Promise<LiveMailbox[]> {
    const { store, capture } = this.parts
    return mailboxesOf(await listLiveWorkers(store, capture.clock.now()))
  }

  /** Raised alerts of all processes, by name. */
  alerts(): Promise<Alert[]> {
    return this.parts.alerts.raised()
  }

  /** Alerts that were raised and cleared, the newest first. Default: the last 500. */
  alertHistory(limit?: number): Promise<AlertChange[]> {
    return this.parts.alerts.history(limit)
  }

  /** Notifications that wait, were delivered or failed, the newest first. Default: 500. */
  alertDeliveries(limit?: number): Promise<AlertDelivery[]> {
    return this.parts.alerts.deliveries(limit)
  }

  /** How many letters and saved edits use each key. Reads all of them. */
  async keyUse(): Promise<KeyUse> {
    const { countKeys } = this.parts.store
    if (!countKeys) throw noEncryption()
    return countKeys()
  }

  async health(): Promise<Health> {
    const { redelivery, alertMonitor, store } = this.parts
    const { started: running, active, stuck } = redelivery
    const raised = (await alertMonitor?.raised()) ?? []
    const health = await readHealth(store, { running, active }, stuck, raised, store.spool)
    // Health never rejects: it already says that the store is unreachable.
    return { ...health, pausedQueues: await this.pausedQueues().catch(() => []) }
  }
}
