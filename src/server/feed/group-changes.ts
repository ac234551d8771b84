import type { Clock } from '../../clock/clock.ts'
import type { FoundGroup, LatestGroupChange } from '../../letter/group.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { viewGroup } from '../group-view.ts'
import type { Happening } from './activity.ts'

/** Pause between two reads. Each reads all groups that people have changed. */
const readMs = 1000
/** Groups of one read. Further ones are sent after the next reads. */
const maxGroups = 50

/** What has changed in groups: new ones, and changes by people and letters. */
export class GroupChanges {
  readonly #dlq: DeadLetterQueue
  readonly #clock: Clock
  /** The latest change of each group that was sent. Undefined: nothing was read yet. */
  #sent: Map<string, LatestGroupChange> | undefined
  #nextReadMs = 0

  constructor(dlq: DeadLetterQueue, clock: Clock) {
    this.#dlq = dlq
    this.#clock = clock
  }

  /** Returns what has changed since the last read. The first read returns nothing. */
  async read(): Promise<Happening[]> {
    if (this.#sent && this.#clock.mono() < this.#nextReadMs) return []
    const latest = await this.#dlq.latestGroupChanges()
    const sent = this.#sent ?? latest
    const changed = [...latest]
      .filter(([fingerprint, change]) => !isSame(sent.get(fingerprint), change))
      .slice(0, maxGroups)
    const found =
      changed.length === 0 ? [] : await this.#dlq.groupsOf(changed.map(([group]) => group))
    const still = [...sent].filter(([fingerprint]) => latest.has(fingerprint))
    this.#sent = new Map([...still, ...changed])
    this.#nextReadMs = this.#clock.mono() + readMs
    return found.flatMap((one) => {
      const change = latest.get(one.group.fingerprint)
      return change ? [ofGroup(one, change)] : []
    })
  }
}

function isSame(one: LatestGroupChange | undefined, other: LatestGroupChange): boolean {
  return one?.at === other.at && one.change === other.change && one.by === other.by
}

/** Groups are about whole queues, so that callers with tenants do not get them. */
function ofGroup({ group, queues: own }: FoundGroup, change: LatestGroupChange): Happening {
  return {
    isIn: ({ queues, tenants }) =>
      tenants === undefined &&
      (queues === undefined || (own?.every((queue) => queues.includes(queue)) ?? false)),
    eventFor: (caller) => ({ type: 'group', ...change, group: viewGroup(group, caller) }),
  }
}
