import { priorities } from '../../letter/letter.ts'
import { claimScore, rankOf } from '../../letter/order.ts'
import type { ClaimRequest } from '../../store.ts'
import type { Kept } from './kept.ts'
import { Sorted } from './sorted.ts'

/** Letters of one queue and priority that a claim may take, now or later, by due time. */
type DueList = Sorted<Kept>

/** The letters that wait for their time. */
export class Due {
  /** By queue, and then by rank of priority. */
  readonly #queues = new Map<string, DueList[]>()

  /** Puts the letter where it belongs; without a time, nowhere. */
  place(kept: Kept, dueMs: number | undefined): void {
    if (kept.dueIn) this.#leave(kept, kept.dueIn)
    if (dueMs === undefined) return
    kept.dueMs = dueMs
    kept.dueIn = this.#ranks(kept.letter.queue)[rankOf(kept.letter.priority)]!
    kept.dueIn.add(kept)
  }

  /** Takes out the first that are due, in the order of claims. */
  take(request: ClaimRequest, nowMs: number): Kept[] {
    const lists = this.#asked(request).filter((list) => list.first()!.dueMs <= nowMs)
    const taken: Kept[] = []
    while (taken.length < request.limit) {
      const next = soonest(lists, nowMs)
      if (!next) break
      this.place(next, undefined)
      taken.push(next)
    }
    return taken
  }

  /** When the next of these queues becomes due. */
  nextMs(request: ClaimRequest): number | undefined {
    let nextMs: number | undefined
    for (const list of this.#asked(request)) {
      const { dueMs } = list.first()!
      if (nextMs === undefined || dueMs < nextMs) nextMs = dueMs
    }
    return nextMs
  }

  /** Lists that are not empty, of the queues asked. */
  #asked({ queues, except }: ClaimRequest): DueList[] {
    const names = queues ? new Set(queues) : this.#queues.keys()
    const lists: DueList[] = []
    for (const name of names) {
      if (except?.includes(name)) continue
      for (const list of this.#queues.get(name) ?? []) if (list.size > 0) lists.push(list)
    }
    return lists
  }

  /** Queues without letters are forgotten, or names that are used once would gather here for ever. */
  #leave(kept: Kept, list: DueList): void {
    list.delete(kept)
    kept.dueIn = undefined
    const { queue } = kept.letter
    if (list.size === 0 && this.#ranks(queue).every((other) => other.size === 0))
      this.#queues.delete(queue)
  }

  #ranks(queue: string): DueList[] {
    let ranks = this.#queues.get(queue)
    if (!ranks) {
      ranks = priorities.map(() => new Sorted(dueBefore))
      this.#queues.set(queue, ranks)
    }
    return ranks
  }
}

function dueBefore(a: Kept, b: Kept): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.id < b.id)
}

/** The one to go first among the heads that are due. */
function soonest(lists: DueList[], nowMs: number): Kept | undefined {
  let best: Kept | undefined
  let bestScore = Number.POSITIVE_INFINITY
  for (const list of lists) {
    const head = list.first()
    if (!head || head.dueMs > nowMs) continue
    const score = claimScore(rankOf(head.letter.priority), head.dueMs)
    if (score > bestScore || (score === bestScore && best && best.id < head.id)) continue
    best = head
    bestScore = score
  }
  return best
}
