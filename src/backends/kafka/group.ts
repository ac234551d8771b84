import {
  COOPERATIVE_STICKY_ASSIGNOR,
  type ClusterMetadata,
  type Consumer,
  type GroupAssignment,
  type offsetCommitV9,
  type offsetFetchV9,
} from '@platformatic/kafka'
import { sleep } from '../../clock/clock.ts'
import type { RedriveError } from '../../errors.ts'
import { askBroker, type Cluster } from './cluster.ts'

type OffsetCommitRequest = Parameters<typeof offsetCommitV9.createRequest>
type OffsetFetchRequest = Parameters<typeof offsetFetchV9.createRequest>
type OffsetFetchResponse = ReturnType<typeof offsetFetchV9.parseResponse>

export interface Place {
  topic: string
  partition: number
}

/** How far a partition is, and what is known beyond that. -1: nobody has said yet. */
export interface Position extends Place {
  offset: number
  note: string
}

/** Who somebody is in a group. Whoever is given up and comes back is somebody else. */
export interface Member {
  generationId: number
  memberId: string
}

export interface GroupOptions {
  cluster: Cluster
  groupId: string
  topics: readonly string[]
  /** A member that says nothing for so long is given up. */
  sessionMs: number
  /** These are ours from now on, for as long as `owns` says so of these very objects. */
  assigned: (places: Place[]) => void
  /** Somebody else gets these as soon as this resolves. */
  revoked: (places: Place[]) => Promise<void>
  /** Somebody else may have these already. */
  lost: (places: Place[]) => void
  onError: (error: RedriveError) => void
  /** How often it is looked whether partitions were added. */
  lookEveryMs?: number
}

/** How long a member may take to let go of what it has. */
const rebalanceMs = 30_000
const longestRetryMs = 5000

/**
 * Membership in a consumer group. When others come or go, partitions that stay with a member are not disturbed; those that leave it are
 * let go of in good order first.
 *
 * Offsets are committed here and not by the client: it would join anew when a commit is refused, and then commit once more what
 * somebody else may have passed by then; and it keeps no notes.
 */
export class Group {
  readonly #options: GroupOptions
  readonly #owned = new Map<string, Place>()
  #consumer: Consumer
  #member: Member = { generationId: -1, memberId: '' }
  #isIn = false
  #joining: Promise<void> | undefined
  /** How many partitions each topic had when the last round of joining began. What is handed out in it is not older. */
  #known = ''
  #cancelLook: (() => void) | undefined
  readonly #closing = new AbortController()

  constructor(options: GroupOptions) {
    this.#options = options
    this.#consumer = this.#client()
  }

  get consumer(): Consumer {
    return this.#consumer
  }

  /** Becomes a member, however long it takes. Safe twice. */
  join(): void {
    this.#isIn = true
    this.#joining ??= this.#keepJoining()
  }

  /** Whoever joins meanwhile does so afterwards. */
  async leave(): Promise<void> {
    if (!this.#isIn) return
    this.#isIn = false
    const left = this.#leaveAfter(this.#joining)
    this.#joining = left
    await left
    if (this.#joining === left) this.#joining = undefined
    if (this.#isIn) this.join()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#cancelLook?.()
    // A broker that is away is not waited for: it gives us up by itself.
    await this.#options.cluster.call(() => this.leave()).catch(() => {})
    await this.#options.cluster.call(() => this.consumer.close(true)).catch(() => {})
  }

  /** Whether it is still ours. One that went and came back is another one. */
  owns(place: Place): boolean {
    return this.#owned.get(keyOf(place)) === place
  }

  /**
   * As whom we own what we own. Positions are worth as much as who we were when we knew them: the broker takes them from whoever is in the
   * group, also when somebody else has had the partitions meanwhile. In a round of joining we have a new name before we hear what is
   * ours under it; until then the former one counts.
   */
  get member(): Member {
    return this.#member
  }

  /** Refused by the broker when somebody else has the partitions: with UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION. */
  async commit(positions: readonly Position[]): Promise<void> {
    const { groupId } = this.#options
    const { generationId, memberId } = this.member
    const topics = committed(positions)
    const asked: OffsetCommitRequest = [groupId, generationId, memberId, null, topics]
    const node = await this.consumer.findGroupCoordinator()
    await askBroker(this.consumer, node, 'OffsetCommit', asked)
  }

  /** How far the group is with each of them. */
  async positions(places: readonly Place[]): Promise<Position[]> {
    const { groupId } = this.#options
    const topics = byTopic(places).map(([name, parts]) => ({
      name,
      partitionIndexes: parts.map(({ partition }) => partition),
    }))
    const asked: OffsetFetchRequest = [[{ groupId, memberEpoch: -1, topics }], true]
    const node = await this.consumer.findGroupCoordinator()
    const answer = await askBroker<OffsetFetchRequest, OffsetFetchResponse>(
      this.consumer,
      node,
      'OffsetFetch',
      asked,
    )
    const told = answer.groups.flatMap((group) =>
      group.topics.flatMap(({ name: topic, partitions }) =>
        partitions.map(({ partitionIndex, committedOffset, metadata }) => ({
          topic,
          partition: partitionIndex,
          offset: Number(committedOffset),
          note: metadata ?? '',
        })),
      ),
    )
    const byKey = new Map(told.map((position) => [keyOf(position), position]))
    return places.map((place) => {
      const position = byKey.get(keyOf(place))
      if (!position) throw new Error(`the broker does not say how far ${keyOf(place)} is`)
      return position
    })
  }

  async #leaveAfter(joining: Promise<void> | undefined): Promise<void> {
    await joining
    this.#cancelLook?.()
    const former = this.consumer
    await Promise.resolve(former.leaveGroup(true)).catch(() => {})
    this.#settle([])
    if (this.#closing.signal.aborted) return
    this.#consumer = this.#client()
    // Whoever joins next does not wait for it.
    void this.#options.cluster.call(() => former.close(true)).catch(() => {})
  }

  /** For one membership. One that leaves while it is about to say that it is there waits for that for ever, and would never say it again. */
  #client(): Consumer {
    const { cluster, groupId, topics, sessionMs } = this.#options
    const consumer = cluster.consumer({
      groupId,
      sessionTimeout: sessionMs,
      heartbeatInterval: Math.ceil(sessionMs / 10),
      rebalanceTimeout: Math.max(rebalanceMs, sessionMs),
      protocols: [{ name: COOPERATIVE_STICKY_ASSIGNOR, version: 3 }],
      protocolsMetadata: async (_protocols, _topics, { topics: found }) => {
        this.#cancelLook?.()
        this.#known = this.#countsIn(found)
        await this.#letGo()
        return Buffer.alloc(0)
      },
    })
    consumer.topics.trackAll(...topics)
    consumer.on('consumer:group:join', ({ assignments = [], isLeader }) => {
      this.#settle(assignments)
      if (isLeader) this.#watch()
    })
    consumer.on('error', () => {
      if (consumer !== this.#consumer) return
      this.#joining = undefined
      if (this.#isIn) this.join()
    })
    return consumer
  }

  async #keepJoining(): Promise<void> {
    const { cluster, onError } = this.#options
    this.#cancelLook?.()
    for (let waitMs = 250; this.#isIn && !this.#closing.signal.aborted; waitMs *= 2)
      try {
        await this.consumer.joinGroup({})
        return
      } catch (error) {
        onError(cluster.toRedriveError(error))
        const jitter = 0.5 + cluster.clock.random()
        await sleep(cluster.clock, Math.min(waitMs, longestRetryMs) * jitter, this.#closing.signal)
      }
  }

  /** Partitions may be added to a topic. When the member that leads the group joins anew, it gives them to somebody. */
  #watch(): void {
    const { cluster, lookEveryMs = 30_000 } = this.#options
    this.#cancelLook?.()
    if (this.#closing.signal.aborted) return
    const over = new AbortController()
    const cancel = cluster.clock.timer(lookEveryMs, () => void this.#look(over.signal))
    this.#cancelLook = () => {
      cancel()
      over.abort()
    }
  }

  /** What it finds counts only if nobody joins or leaves meanwhile: two rounds of joining at once get in each other's way. */
  async #look(over: AbortSignal): Promise<void> {
    // The brokers may be away. Others tell that.
    const found = await this.#partitions().catch(() => this.#known)
    if (over.aborted || !this.#isIn) return
    if (found === this.#known) this.#watch()
    else this.#joining = this.#keepJoining()
  }

  async #partitions(): Promise<string> {
    const { cluster, topics: names } = this.#options
    const asked = { topics: [...names], forceUpdate: true }
    const { topics } = await cluster.call(() => this.consumer.metadata(asked))
    return this.#countsIn(topics)
  }

  #countsIn(topics: ClusterMetadata['topics']): string {
    return this.#options.topics.map((name) => topics.get(name)?.partitionsCount ?? 0).join()
  }

  /** Before each round of joining: what the last round took from us goes. */
  async #letGo(): Promise<void> {
    const { lost, revoked } = this.#options
    const gone = this.#disown(this.consumer.assignments ?? [])
    if (gone.length === 0) return
    if (this.consumer.memberId === null) return lost(gone)
    // The round that takes them has given nobody else anything of ours.
    this.#remember()
    await revoked(gone)
  }

  #settle(assignments: readonly GroupAssignment[]): void {
    const { lost, assigned } = this.#options
    const gone = this.#disown(assignments)
    this.#remember()
    if (gone.length > 0) lost(gone)
    const added = placesIn(assignments).filter((place) => !this.#owned.has(keyOf(place)))
    for (const place of added) this.#owned.set(keyOf(place), place)
    assigned(added)
  }

  #remember(): void {
    const { generationId, memberId } = this.consumer
    this.#member = { generationId, memberId: memberId ?? '' }
  }

  /** All that is not among these. Nobody begins with it any more. */
  #disown(assignments: readonly GroupAssignment[]): Place[] {
    const kept = new Set(placesIn(assignments).map(keyOf))
    const gone = [...this.#owned.values()].filter((place) => !kept.has(keyOf(place)))
    for (const place of gone) this.#owned.delete(keyOf(place))
    return gone
  }
}

export function keyOf({ topic, partition }: Place): string {
  return `${topic}:${partition}`
}

/** As a broker is told of them. */
export function committed(positions: readonly Position[]): OffsetCommitRequest[4] {
  return byTopic(positions).map(([name, parts]) => ({
    name,
    partitions: parts.map(({ partition, offset, note }) => ({
      partitionIndex: partition,
      committedOffset: BigInt(offset),
      committedLeaderEpoch: -1,
      committedMetadata: note,
    })),
  }))
}

function placesIn(assignments: readonly GroupAssignment[]): Place[] {
  return assignments.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  )
}

function byTopic<P extends Place>(places: readonly P[]): [topic: string, places: P[]][] {
  return [...Map.groupBy(places, ({ topic }) => topic)]
}
