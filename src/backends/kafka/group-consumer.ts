import { retry } from '../../clock/retry.ts'
import { Batcher } from '../batcher.ts'
import type { Cluster } from './cluster.ts'
import { isRefusal } from './errors.ts'
import { Fetcher, type FetchedPartition, type FetcherEvents } from './fetcher.ts'
import { Group, listCommittedOffsets, type CommittedOffset, type GroupOptions } from './group.ts'
import { done, Progress } from './progress.ts'
import { partitionKey, type StoredRecord, type TopicPartition } from './record.ts'

/** A partition of this member. A partition that is lost and assigned again is a new object. */
export interface AssignedPartition extends FetchedPartition {
  readonly progress: Progress
  /** Another member will get the partition soon. */
  isRevoked: boolean
  /** Another member may have the partition. */
  isLost: boolean
}

/** The records of a partition in memory. */
export interface Buffered {
  readonly entries: { readonly size: number }
  bytes: number
}

/** A partition is read no further while it has so many records or bytes in memory. */
const maxEntries = 5000
const maxBytes = 32 * 1024 ** 2

type GroupSettings = Pick<GroupOptions, 'groupId' | 'topics' | 'sessionMs' | 'checkPartitionsMs'>

export interface GroupConsumerOptions<P> extends GroupSettings, FetcherEvents {
  cluster: Cluster
  /** Adds the state of the caller to a partition that was assigned. */
  onAssigned: (partition: AssignedPartition) => P
  /** Records that are not done, in order. */
  onRecords: (partition: P, records: StoredRecord[]) => void
  /** All records before the offset are deleted. */
  onDeleted: (partition: P, offset: number) => void
  /** Another member gets the partition when this resolves. Progress until then is committed. */
  onRevoked: (partition: P) => Promise<void>
  /** Results for records of this partition no longer count. */
  onLost: (partition: P) => void
  onCommitted?: (partitions: readonly P[]) => void
  /** Partitions to commit in addition to those that were asked for. */
  pending?: () => readonly P[]
  /** Commits instead of `Group.commit`, with its own time limit. */
  commit?: (offsets: CommittedOffset[]) => Promise<void>
}

/** Reads the partitions that a group assigns to this member and commits their progress. */
export class GroupConsumer<P extends AssignedPartition & Buffered> {
  readonly group: Group
  readonly #options: GroupConsumerOptions<P>
  readonly #fetcher: Fetcher
  readonly #partitions = new Map<string, P>()
  readonly #commits: Batcher<P, void>
  #isClosed = false

  constructor(options: GroupConsumerOptions<P>) {
    this.#options = options
    this.#fetcher = new Fetcher(options.cluster, options)
    const limits = { maxInFlight: 1, maxBatchCost: Infinity }
    this.#commits = new Batcher<P, void>(limits, async (partitions) => {
      await this.#commit(new Set(partitions))
      return partitions.map(() => ({ value: undefined }))
    })
    this.group = new Group({
      ...options,
      onAssigned: (partitions) => {
        options.onHealthy()
        void this.#start(partitions)
      },
      onRevoked: (partitions) => this.#release(partitions),
      onLost: (partitions) => this.#lose(this.#find(partitions)),
    })
  }

  all(): P[] {
    return [...this.#partitions.values()]
  }

  /** Continues to read after a partition got room. */
  wake(): void {
    this.#fetcher.wake()
  }

  /** Resolves when the broker has stored the current progress. Skips lost partitions. */
  async commit(partitions: Iterable<P>): Promise<void> {
    await Promise.all(Array.from(partitions, (partition) => this.#commits.call(partition)))
  }

  /** Handles records before these offsets of their partitions as deleted. */
  async deleteBefore(offsets: ReadonlyMap<number, number>): Promise<void> {
    for (const partition of this.all())
      this.#delete(partition, offsets.get(partition.partition) ?? 0)
    await this.commit(this.all())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#commits.idle()
    this.#lose(this.all())
    await Promise.all([this.group.close(), this.#fetcher.close()])
  }

  async #start(assigned: TopicPartition[]): Promise<void> {
    const { cluster, groupId, onError, onHealthy } = this.#options
    const report = (error: unknown): void => onError(cluster.toRedriveError(error))
    const admin = cluster.admin()
    const owned = (): TopicPartition[] =>
      this.#isClosed ? [] : assigned.filter((partition) => this.group.owns(partition))
    const pauses = { clock: cluster.clock, firstMs: 100, maxMs: 2000, onError: report }
    await retry(pauses, async () => {
      if (owned().length === 0) return
      const bounds = await this.#fetcher.bounds(assigned)
      const offsets = await listCommittedOffsets(admin, groupId, assigned)
      for (const partition of owned()) {
        const at = assigned.indexOf(partition)
        const { offset, metadata } = offsets[at]!
        this.#add(partition, new Progress(offset, metadata, bounds[at]!.first))
      }
      onHealthy()
    })
    await admin.close().catch(() => {})
  }

  #add({ topic, partition }: TopicPartition, progress: Progress): void {
    const key = partitionKey({ topic, partition })
    // A former assignment can still be in release.
    this.#lose(this.#find([{ topic, partition }]))
    const added = this.#options.onAssigned({
      topic,
      partition,
      position: progress.base,
      progress,
      isRevoked: false,
      isLost: false,
      hasRoom: () => !added.isRevoked && added.entries.size < maxEntries && added.bytes < maxBytes,
      onRecords: (records, from, to, logStart) => {
        if (added.isLost) return
        this.#delete(added, logStart)
        this.#receive(added, records, from, to)
      },
      // The state of former records does not apply to new ones: a duplicate is better than a loss.
      onReset: (from) => {
        if (added.isLost || added.isRevoked) return
        this.#add(added, new Progress(Math.min(from, added.progress.base), ''))
        this.commit(this.#find([added])).catch(this.#options.onError)
      },
    })
    this.#partitions.set(key, added)
    this.#fetcher.add(added)
  }

  #receive(partition: P, records: StoredRecord[], from: number, to: number): void {
    const { progress } = partition
    const open: StoredRecord[] = []
    let next = from
    for (const record of records) {
      const { offset } = record
      if (offset > next) progress.skip(next, offset)
      next = offset + 1
      const state = progress.stateOf(offset)
      if (state === done) continue
      progress.set(offset, state)
      open.push(record)
    }
    if (to > next) progress.skip(next, to)
    this.#options.onRecords(partition, open)
  }

  #delete(partition: P, offset: number): void {
    if (offset <= partition.progress.base) return
    this.#options.onDeleted(partition, offset)
    partition.progress.moveTo(offset)
  }

  async #commit(requested: Set<P>): Promise<void> {
    const { cluster, pending, onCommitted } = this.#options
    const { commit = (all) => cluster.call(() => this.group.commit(all)) } = this.#options
    const pauses = { clock: cluster.clock, limitMs: cluster.timeoutMs, firstMs: 50, maxMs: 50 }
    await retry({ ...pauses, shouldRetry: canCommitAgain }, async () => {
      const all = new Set([...requested, ...(pending?.() ?? [])])
      const partitions = [...all].filter(({ isLost }) => !isLost)
      if (partitions.length === 0) return
      const offsets = partitions.map(({ topic, partition, progress }) => {
        return { topic, partition, offset: progress.base, metadata: progress.toMetadata() }
      })
      try {
        await commit(offsets)
      } catch (error) {
        // This member may have rejoined by now, with other objects for its partitions.
        if (isRefusal(error, 'UNKNOWN_MEMBER_ID')) this.#lose(partitions)
        throw error
      }
      onCommitted?.(partitions)
    })
  }

  async #release(revoked: TopicPartition[]): Promise<void> {
    const partitions = this.#find(revoked)
    for (const partition of partitions) {
      partition.isRevoked = true
      this.#fetcher.remove(partition)
    }
    const release = async (partition: P): Promise<void> => {
      await this.#options.onRevoked(partition)
      await this.commit([partition]).catch(() => {})
    }
    await Promise.all(partitions.map(release))
    this.#lose(partitions)
  }

  #find(partitions: readonly TopicPartition[]): P[] {
    return partitions.flatMap((partition) => this.#partitions.get(partitionKey(partition)) ?? [])
  }

  #lose(partitions: readonly P[]): void {
    for (const partition of partitions) {
      if (partition.isLost) continue
      this.#partitions.delete(partitionKey(partition))
      partition.isLost = true
      this.#fetcher.remove(partition)
      this.#options.onLost(partition)
    }
  }
}

/** The group rebalances, its coordinator moves, or the lost partitions are left out next time. */
function canCommitAgain(error: unknown): boolean {
  const rebalance = ['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'NOT_COORDINATOR']
  return isRefusal(error, 'UNKNOWN_MEMBER_ID', ...rebalance)
}
