import { sleep } from '../../clock/clock.ts'
import type { RedriveError } from '../../errors.ts'
import type { Cluster } from './cluster.ts'
import { Commits } from './commits.ts'
import { Fetcher, type Reading } from './fetcher.ts'
import { Group, keyOf, type Place, type Position } from './group.ts'
import { done, Progress } from './progress.ts'
import type { Stored } from './record.ts'
import { isRefusal } from './errors.ts'

/** A partition that is ours, for as long as it is. When it comes back to us later, it is another one. */
export interface Part extends Reading {
  readonly progress: Progress
  /** Somebody else will have it soon. */
  isLeaving: boolean
  /** Somebody else may have it. */
  isLost: boolean
}

/** Records of one partition in memory, and bytes of them, before it is read no further. */
const maxEntries = 5000
const maxBytes = 32 * 1024 ** 2

/** What is held of a partition, and how many bytes that has. */
export interface Holds {
  readonly entries: { readonly size: number }
  bytes: number
}

export interface PartsOptions<P extends Part & Holds> {
  cluster: Cluster
  groupId: string
  topics: readonly string[]
  /** A member that says nothing for so long is given up. */
  sessionMs: number
  /** How often it is looked whether partitions were added. */
  lookEveryMs?: number
  /** It is ours from now on: gives it what else is to be known of it. */
  begin: (part: Part) => P
  /** Records that are not done, in their order. */
  arrived: (part: P, records: Stored[]) => void
  /** There is nothing before the offset in the topic any more. */
  cut: (part: P, offset: number) => void
  /** Somebody else gets it as soon as this resolves. What was done until then is told to them. */
  leaving: (part: P) => Promise<void>
  /** It is not ours any more, and what comes of its records counts no longer. */
  gone: (part: P) => void
  /** The broker knows how far they are. */
  committed?: (parts: readonly P[]) => void
  /** The brokers do not answer, or refuse. It is tried again by itself. */
  onError: (error: RedriveError) => void
  well: () => void
  /** Called before it is looked how far the partitions are. The broker is told of these, too. */
  closeBooks?: () => readonly P[]
  /** Tells the broker, instead of the plain way. Bounds its own time. */
  commit?: (positions: Position[]) => Promise<void>
}

/** The partitions that are ours as a member of a group: reads them, and keeps books on how far they are. */
export class Parts<P extends Part & Holds> {
  readonly group: Group
  readonly #options: PartsOptions<P>
  readonly #fetcher: Fetcher
  readonly #parts = new Map<string, P>()
  readonly #commits = new Commits<P>((asked) => this.#commitAll(asked))
  #isClosed = false

  constructor(options: PartsOptions<P>) {
    this.#options = options
    const { cluster, groupId, topics, sessionMs, lookEveryMs, onError, well } = options
    this.#fetcher = new Fetcher({ cluster, groupId, onError, well })
    this.group = new Group({
      cluster,
      groupId,
      topics,
      sessionMs,
      assigned: (places) => {
        well()
        void this.#begin(places)
      },
      revoked: (places) => this.#letGo(places),
      lost: (places) => this.#lose(this.#at(places)),
      onError,
      ...(lookEveryMs === undefined ? {} : { lookEveryMs }),
    })
  }

  all(): P[] {
    return [...this.#parts.values()]
  }

  /** There may be room again. */
  wake(): void {
    this.#fetcher.wake()
  }

  /** Resolves when the broker has heard how far these are, at least as far as now. Those that are lost it does not hear of. */
  commit(parts: Iterable<P>): Promise<void> {
    return this.#commits.ask(parts)
  }

  /** There is nothing before these offsets of their partitions any more. */
  async forgetBefore(offsets: ReadonlyMap<number, number>): Promise<void> {
    for (const part of this.all()) this.#cut(part, offsets.get(part.partition) ?? 0)
    await this.commit(this.all())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#commits.idle()
    this.#lose(this.all())
    await Promise.all([this.group.close(), this.#fetcher.close()])
  }

  async #begin(assigned: Place[]): Promise<void> {
    const { cluster, onError, well } = this.#options
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 2000)) {
      // It may take long to hear how far they are. Others may have gone on with them since.
      const places = assigned.filter((place) => this.group.owns(place))
      if (places.length === 0 || this.#isClosed) return
      try {
        const bounds = await this.#fetcher.bounds(places)
        const positions = await this.group.positions(places)
        for (const [at, place] of places.entries()) {
          if (!this.group.owns(place) || this.#isClosed) continue
          this.#start(place, Progress.of(positions[at]!, bounds[at]!.first))
        }
        well()
        return
      } catch (error) {
        onError(cluster.toRedriveError(error))
        await sleep(cluster.clock, waitMs)
      }
    }
  }

  #start(place: Place, progress: Progress): void {
    // One from before may still be on its way out.
    this.#lose(this.#at([place]))
    const part = this.#options.begin({
      ...place,
      position: progress.base,
      progress,
      isLeaving: false,
      isLost: false,
      hasRoom: () => !part.isLeaving && part.entries.size < maxEntries && part.bytes < maxBytes,
      arrived: (records, from, to, first) => {
        if (part.isLost) return
        this.#cut(part, first)
        this.#arrive(part, records, from, to)
      },
      // What was done says nothing of what lies there now: better twice than never.
      madeAnew: (first) => {
        if (part.isLost || part.isLeaving) return
        this.#start(place, new Progress(Math.min(first, part.progress.base), ''))
        // Until we knew, the broker was told how far we were among those.
        this.commit(this.#at([place])).catch(this.#options.onError)
      },
    })
    this.#parts.set(keyOf(place), part)
    this.#fetcher.add(part)
  }

  #arrive(part: P, records: Stored[], from: number, to: number): void {
    const { progress } = part
    const open: Stored[] = []
    let next = from
    for (const record of records) {
      const { offset } = record
      if (offset > next) progress.skip(next, offset)
      next = offset + 1
      const mark = progress.markOf(offset)
      if (mark === done) continue
      progress.mark(offset, mark)
      open.push(record)
    }
    if (to > next) progress.skip(next, to)
    this.#options.arrived(part, open)
  }

  /** All before the offset is gone. */
  #cut(part: P, offset: number): void {
    if (offset <= part.progress.base) return
    this.#options.cut(part, offset)
    part.progress.moveTo(offset)
  }

  /** Tells what is true when it goes. */
  async #commitAll(asked: Set<P>): Promise<void> {
    const { cluster, closeBooks, committed } = this.#options
    const plainly = (all: Position[]): Promise<void> => cluster.call(() => this.group.commit(all))
    const { commit = plainly } = this.#options
    const endMs = cluster.clock.mono() + cluster.timeoutMs
    for (;;) {
      const owed = closeBooks?.() ?? []
      const parts = [...new Set([...asked, ...owed])].filter(({ isLost }) => !isLost)
      if (parts.length === 0) return
      const positions = parts.map(({ topic, partition, progress }) => ({
        topic,
        partition,
        offset: progress.base,
        note: progress.note(),
      }))
      try {
        await commit(positions)
        committed?.(parts)
        return
      } catch (error) {
        const { cause } = error as Error
        // We may be in the group again by now, with these or others anew.
        if (isRefusal(cause, 'UNKNOWN_MEMBER_ID')) this.#lose(parts)
        else if (!isPassing(cause) || cluster.clock.mono() > endMs) throw error
        else await sleep(cluster.clock, 50)
      }
    }
  }

  async #letGo(places: Place[]): Promise<void> {
    const { leaving } = this.#options
    const parts = this.#at(places)
    for (const part of parts) {
      part.isLeaving = true
      this.#fetcher.remove(part)
    }
    await Promise.all(
      parts.map(async (part) => {
        await leaving(part)
        await this.commit([part]).catch(() => {})
      }),
    )
    this.#lose(parts)
  }

  #at(places: readonly Place[]): P[] {
    return places.flatMap((place) => this.#parts.get(keyOf(place)) ?? [])
  }

  #lose(parts: readonly P[]): void {
    for (const part of parts) {
      if (part.isLost) continue
      this.#parts.delete(keyOf(part))
      part.isLost = true
      this.#fetcher.remove(part)
      this.#options.gone(part)
    }
  }
}

/** The group is being arranged anew, or its coordinator moves. */
function isPassing(error: unknown): boolean {
  return ['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'NOT_COORDINATOR'].some((id) =>
    isRefusal(error, id),
  )
}
