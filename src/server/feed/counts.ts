import type { FeedEvent } from '../../api/schemas/feed.ts'
import { states, type State } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { Store } from '../../store.ts'

type Counts = { [S in State]?: number }
type CountsEvent = Extract<FeedEvent, { type: 'counts' }>

const maxQueues = 1000

/** The counts of letters by queue and state, and what has changed in them. */
export class QueueCounts {
  #byQueue = new Map<string, Counts>()

  /** Reads maintained counts. Returns the event of the change, if there is one. */
  async read(
    store: Pick<Store, 'tally'>,
    filter: Pick<LetterFilter, 'queue'>,
  ): Promise<CountsEvent | undefined> {
    const before = this.#byQueue
    const after = new Map<string, Counts>()
    const tallies = await Promise.all(
      states.map((state) => store.tally('queue', { ...filter, state })),
    )
    for (const [index, state] of states.entries())
      for (const [queue, count] of tallies[index]!)
        if (count > 0) after.set(queue, { ...after.get(queue), [state]: count })
    this.#byQueue = after
    const names = new Set([...before.keys(), ...after.keys()])
    const changed = [...names].filter((name) => !isSame(before.get(name), after.get(name)))
    return changed.length > 0 ? this.#eventOf(changed) : undefined
  }

  /** All counts. */
  current(): CountsEvent {
    return this.#eventOf([...this.#byQueue.keys()])
  }

  #eventOf(queues: readonly string[]): CountsEvent {
    const shown = queues.toSorted().slice(0, maxQueues)
    return {
      type: 'counts',
      states: sumOf([...this.#byQueue.values()]),
      // Not a literal: a queue may have any name.
      queues: Object.fromEntries(shown.map((queue) => [queue, this.#byQueue.get(queue) ?? {}])),
      ...(queues.length > maxQueues ? { more: true } : {}),
    }
  }
}

function sumOf(all: readonly Counts[]): Counts {
  const sums = states.map((state) => [
    state,
    all.reduce((sum, counts) => sum + (counts[state] ?? 0), 0),
  ])
  return Object.fromEntries(sums.filter(([, sum]) => sum !== 0)) as Counts
}

function isSame(one: Counts = {}, other: Counts = {}): boolean {
  return states.every((state) => one[state] === other[state])
}
