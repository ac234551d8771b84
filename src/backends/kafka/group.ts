import {
  COOPERATIVE_STICKY_ASSIGNOR,
  offsetCommitV8,
  type Admin,
  type ClusterMetadata,
  type Consumer,
  type GroupAssignment,
} from '@platformatic/kafka'
import { sleep } from '../../clock/clock.ts'
import { retry } from '../../clock/retry.ts'
import type { RedriveError } from '../../errors.ts'
import { requestBroker, type Cluster } from './cluster.ts'
import { partitionKey, type TopicPartition } from './record.ts'

/** An offset as the broker stores it for a group. Offset -1: nothing was committed yet. */
export interface CommittedOffset extends TopicPartition {
  offset: number
  metadata: string
}

/** The identity of a member. A member that is removed from the group and rejoins gets a new one. */
export interface Membership {
  generationId: number
  memberId: string
}

export interface GroupOptions {
  cluster: Cluster
  groupId: string
  topics: readonly string[]
  /** The broker removes a member that sends no heartbeat for so long. */
  sessionMs: number
  /** The partitions belong to this member while `owns` returns true for these very objects. */
  onAssigned: (partitions: TopicPartition[]) => void
  /** Another member gets the partitions as soon as the promise resolves. */
  onRevoked: (partitions: TopicPartition[]) => Promise<void>
  /** Another member may have the partitions already. */
  onLost: (partitions: TopicPartition[]) => void
  onError: (error: RedriveError) => void
  /** How often the leader of the group checks for added partitions. Default: 30 seconds. */
  checkPartitionsMs?: number
}

/** Time limit for a member to release its partitions. */
const rebalanceMs = 30_000

/**
 * Membership in a consumer group. Rebalances are cooperative: a partition that stays with a member
 * is not interrupted, and a partition that leaves is released first.
 *
 * Offsets are not committed by `Consumer.commit`: it writes no metadata, and when a commit is
 * refused, it rejoins and repeats the commit, although another member may be further by then.
 */
export class Group {
  readonly consumer: Consumer
  /**
   * The membership under which the owned partitions were assigned. Commits must use it: the broker
   * accepts offsets from every current member, even if another member had the partitions in
   * between. During a rebalance the client has the next membership before its assignment.
   */
  membership: Membership = { generationId: -1, memberId: '' }
  readonly #options: GroupOptions
  readonly #owned = new Map<string, TopicPartition>()
  readonly #closing = new AbortController()
  #joining: Promise<void> | undefined
  /** Partition counts of the topics when the last rebalance started. */
  #partitionCounts = ''
  #watching = new AbortController()

  constructor(options: GroupOptions) {
    this.#options = options
    this.consumer = this.#createConsumer()
  }

  /** Starts to join and retries until it succeeds. */
  join(): void {
    this.#joining ??= this.#joinWithRetries()
  }

  /** Leaves the group. An unreachable broker removes this member when its session expires. */
  async close(): Promise<void> {
    const { cluster } = this.#options
    this.#closing.abort()
    this.#watching.abort()
    const leave = async (): Promise<void> => {
      await this.#joining
      await Promise.resolve(this.consumer.leaveGroup(true))
    }
    await cluster.call(leave).catch(() => {})
    await cluster.call(() => this.consumer.close(true)).catch(() => {})
  }

  /** False for a partition that was lost, even if it was assigned to this member again. */
  owns(partition: TopicPartition): boolean {
    return this.#owned.get(partitionKey(partition)) === partition
  }

  /** Rejects with UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION when the membership is not current. */
  async commit(offsets: readonly CommittedOffset[]): Promise<void> {
    const { generationId, memberId } = this.membership
    const topics = toCommitTopics(offsets)
    const request = [this.#options.groupId, generationId, memberId, null, topics] as const
    const coordinator = await this.consumer.findGroupCoordinator()
    await requestBroker(this.consumer, coordinator, offsetCommitV8.api, ...request)
  }

  #createConsumer(): Consumer {
    const { cluster, groupId, topics, sessionMs } = this.#options
    const consumer = cluster.consumer({
      groupId,
      sessionTimeout: sessionMs,
      heartbeatInterval: Math.ceil(sessionMs / 10),
      rebalanceTimeout: Math.max(rebalanceMs, sessionMs),
      protocols: [{ name: COOPERATIVE_STICKY_ASSIGNOR, version: 3 }],
      // The client calls this before each JoinGroup request and waits for it.
      protocolsMetadata: async (_protocols, _topics, metadata) => {
        this.#watching.abort()
        this.#partitionCounts = this.#countPartitions(metadata)
        await this.#releaseRevoked()
        return Buffer.alloc(0)
      },
    })
    consumer.topics.trackAll(...topics)
    consumer.on('consumer:group:join', ({ assignments = [], isLeader }) => {
      this.#setAssignments(assignments)
      if (isLeader && !this.#closing.signal.aborted) void this.#watchPartitions()
    })
    consumer.on('error', () => {
      if (this.#joining) this.#joining = this.#joinWithRetries()
    })
    return consumer
  }

  async #joinWithRetries(): Promise<void> {
    const { cluster, onError } = this.#options
    const { signal } = this.#closing
    this.#watching.abort()
    if (signal.aborted) return
    const report = (error: unknown): void => onError(cluster.toRedriveError(error))
    const pauses = { clock: cluster.clock, signal, firstMs: 250, maxMs: 5000, onError: report }
    // Rejects only when the group is closed.
    await retry(pauses, () => this.consumer.joinGroup({})).catch(() => {})
  }

  /**
   * When the leader of the group rejoins, it assigns partitions that were added to the topics. A
   * rebalance stops this loop: two concurrent joins of one client disturb each other.
   */
  async #watchPartitions(): Promise<void> {
    const { cluster, topics, checkPartitionsMs = 30_000 } = this.#options
    const request = { topics: [...topics], forceUpdate: true }
    this.#watching.abort()
    const { signal } = (this.#watching = new AbortController())
    for (let counts = this.#partitionCounts; counts === this.#partitionCounts;) {
      await sleep(cluster.clock, checkPartitionsMs, signal)
      if (signal.aborted) return
      const metadata = await cluster.call(() => this.consumer.metadata(request)).catch(() => {})
      if (signal.aborted) return
      if (metadata) counts = this.#countPartitions(metadata)
    }
    this.#joining = this.#joinWithRetries()
  }

  #countPartitions({ topics }: Pick<ClusterMetadata, 'topics'>): string {
    return this.#options.topics.map((name) => topics.get(name)?.partitionsCount ?? 0).join()
  }

  /** Releases the partitions that the last rebalance revoked. */
  async #releaseRevoked(): Promise<void> {
    const { onLost, onRevoked } = this.#options
    const { assignments, memberId } = this.consumer
    const revoked = this.#disownExcept(assignments ?? [])
    if (revoked.length === 0) return
    if (memberId === null) return onLost(revoked)
    // The current generation has not assigned the revoked partitions to another member yet.
    this.#updateMembership()
    await onRevoked(revoked)
  }

  #setAssignments(assignments: readonly GroupAssignment[]): void {
    const { onLost, onAssigned } = this.#options
    const lost = this.#disownExcept(assignments)
    this.#updateMembership()
    if (lost.length > 0) onLost(lost)
    const added = toPartitions(assignments).filter((one) => !this.#owned.has(partitionKey(one)))
    for (const partition of added) this.#owned.set(partitionKey(partition), partition)
    onAssigned(added)
  }

  #updateMembership(): void {
    const { generationId, memberId } = this.consumer
    this.membership = { generationId, memberId: memberId ?? '' }
  }

  /** Removes and returns the owned partitions that are not assigned. */
  #disownExcept(assignments: readonly GroupAssignment[]): TopicPartition[] {
    const assigned = new Set(toPartitions(assignments).map(partitionKey))
    const removed = [...this.#owned.values()].filter((one) => !assigned.has(partitionKey(one)))
    for (const partition of removed) this.#owned.delete(partitionKey(partition))
    return removed
  }
}

/** The committed offsets of a group, in the order of the partitions. */
export async function listCommittedOffsets(
  admin: Admin,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<CommittedOffset[]> {
  const topics = groupByTopic(partitions).map(([name, ofTopic]) => ({
    name,
    partitionIndexes: ofTopic.map(({ partition }) => partition),
  }))
  const request = { groups: [{ groupId, topics }], requireStable: true }
  const [group] = await admin.listConsumerGroupOffsets(request)
  return partitions.map(({ topic, partition }) => {
    const ofTopic = group?.topics.find(({ name }) => name === topic)?.partitions
    const found = ofTopic?.find(({ partitionIndex }) => partitionIndex === partition)
    if (!found) throw new Error(`the broker returned no offset of ${topic}:${partition}`)
    const { committedOffset, metadata } = found
    return { topic, partition, offset: Number(committedOffset), metadata: metadata ?? '' }
  })
}

type CommitTopics = Parameters<typeof offsetCommitV8.createRequest>[4]

/** Converts offsets for OffsetCommit and TxnOffsetCommit requests. */
export function toCommitTopics(offsets: readonly CommittedOffset[]): CommitTopics {
  return groupByTopic(offsets).map(([name, ofTopic]) => ({
    name,
    partitions: ofTopic.map(({ partition, offset, metadata }) => ({
      partitionIndex: partition,
      committedOffset: BigInt(offset),
      committedLeaderEpoch: -1,
      committedMetadata: metadata,
    })),
  }))
}

function toPartitions(assignments: readonly GroupAssignment[]): TopicPartition[] {
  return assignments.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  )
}

function groupByTopic<P extends TopicPartition>(partitions: readonly P[]): [string, P[]][] {
  return [...Map.groupBy(partitions, ({ topic }) => topic)]
}
