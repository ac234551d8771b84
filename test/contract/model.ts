import { isActive, isOpen, type CountedAction, type DeadLetter } from '../../src/letter/letter.ts'
import { countsOf, countsOfCapture } from '../../src/letter/counts.ts'
import { claim, occur, withChange, type Change } from '../../src/letter/moves.ts'
import { ageingMs, rankOf } from '../../src/letter/order.ts'
import { matches, sortKey, type LetterFilter, type Order } from '../../src/letter/query.ts'
import { toMs, toTimestamp } from '../../src/letter/time.ts'
import type {
  AddResult,
  ApplyResult,
  Capacity,
  ClaimRequest,
  KeepResult,
  LeaseRef,
  StoredLetter,
  Total,
} from '../../src/store.ts'

/** A letter of the model, and its unresolved dependencies. */
interface Item {
  letter: DeadLetter
  unmet: string[]
}

/**
 * The store contract in its simplest form: one array that is scanned for everything. The moves
 * change single letters, as in every store; the selection of letters is implemented independently
 * here.
 */
export class StoreModel {
  items: Item[] = []
  totals: Total[] = []
  nowMs: number

  constructor(nowMs: number) {
    this.nowMs = nowMs
  }

  letters(): DeadLetter[] {
    return this.items.map((item) => item.letter)
  }

  get(id: string): DeadLetter | undefined {
    return this.letters().find((letter) => letter.id === id)
  }

  add(letter: DeadLetter, capacity?: Capacity): AddResult {
    const same = this.get(letter.id)
    if (same) return { kind: 'duplicate', of: same.id, by: 'id', occurrences: same.occurrences }
    const [holder] = byId(this.letters()).filter(
      (other) =>
        letter.dedupeKey !== undefined &&
        other.dedupeKey === letter.dedupeKey &&
        other.queue === letter.queue &&
        isOpen(other.state),
    )
    if (holder) {
      const next = occur(holder, letter)
      this.#put(next, ['occur'])
      return { kind: 'duplicate', of: holder.id, by: 'dedupeKey', occurrences: next.occurrences }
    }
    const evicted = capacity ? this.#makeRoom(capacity) : 0
    if (evicted === undefined) return { kind: 'full' }
    this.items.push({ letter, unmet: [...(letter.dependsOn ?? [])] })
    this.#put(letter, countsOfCapture(letter.state))
    return evicted > 0 ? { kind: 'added', evicted } : { kind: 'added' }
  }

  #makeRoom({ maxItems, overflow }: Capacity): number | undefined {
    const letters = this.letters()
    const excess = letters.filter((letter) => letter.state !== 'archived').length + 1 - maxItems
    if (excess <= 0) return 0
    const resolved = this.find({ state: 'resolved' }, 'settled')
    if (overflow === 'reject' || resolved.length < excess) return undefined
    for (const letter of resolved.slice(0, excess)) this.#remove(letter, 'evict')
    return excess
  }

  keep({ letter, waitsFor = [] }: StoredLetter): KeepResult {
    const same = this.get(letter.id)
    if (same && same.version >= letter.version) return 'conflict'
    this.items = this.items.filter((item) => item.letter !== same)
    this.items.push({ letter, unmet: [...waitsFor] })
    this.#put(letter)
    return 'written'
  }

  find(filter: LetterFilter, order: Order): DeadLetter[] {
    const found = byId(this.letters().filter((letter) => matches(letter, filter)))
    if (order === 'newest') return found.toReversed()
    return found.sort((a, b) =>
      sortKey(a, order) < sortKey(b, order) ? -1 : sortKey(a, order) > sortKey(b, order) ? 1 : 0,
    )
  }

  claim(request: ClaimRequest): DeadLetter[] {
    const due = this.#claimable(request)
      .filter((letter) => dueMs(letter) <= this.nowMs)
      .sort((a, b) => score(a) - score(b) || (a.id < b.id ? -1 : 1))
    const { worker, leaseMs } = request
    return due.slice(0, request.limit).map((letter) => {
      const next = claim(letter, { worker, leaseMs, atMs: this.nowMs })
      this.#put(next, ['claim'])
      return next
    })
  }

  /** Valid answers for the next due time: the end of a lease may count as a due time or not. */
  nextDueAt(request: ClaimRequest): (string | undefined)[] {
    const times = (letters: DeadLetter[]): string | undefined =>
      letters.length > 0 ? toTimestamp(Math.min(...letters.map(dueMs))) : undefined
    const claimable = this.#claimable(request)
    return [times(claimable), times(claimable.filter((letter) => letter.state === 'pending'))]
  }

  /** Active letters of the requested queues that no lane or dependency blocks. */
  #claimable({ queues, except }: ClaimRequest): DeadLetter[] {
    const free = this.items.filter(({ letter, unmet }) => {
      const before = this.letters().some(
        (other) =>
          other.lane === letter.lane &&
          other.queue === letter.queue &&
          other.id !== letter.id &&
          (other.state === 'retrying' || (other.state === 'pending' && other.id < letter.id)),
      )
      if (!isActive(letter.state) || unmet.length > 0) return false
      return letter.state === 'retrying' || letter.lane === undefined || !before
    })
    return free
      .map((item) => item.letter)
      .filter(({ queue }) => (queues?.includes(queue) ?? true) && !except?.includes(queue))
  }

  renew({ id, epoch }: LeaseRef, leaseMs: number): boolean {
    const letter = this.get(id)
    if (!letter?.lease || letter.state !== 'retrying' || letter.epoch !== epoch) return false
    const end = toTimestamp(Math.max(this.nowMs + leaseMs, toMs(letter.lease.expiresAt)))
    this.#put({ ...letter, lease: { ...letter.lease, expiresAt: end } })
    return true
  }

  apply(change: Change): ApplyResult {
    const letter = this.get(change.id)
    if (!letter) return 'missing'
    const { guard } = change
    const holds =
      'epoch' in guard
        ? letter.state === 'retrying' &&
          letter.epoch === guard.epoch &&
          letter.lease?.worker === (guard.worker ?? letter.lease?.worker)
        : letter.version === guard.version
    if (!holds) return 'conflict'
    this.#put(withChange(letter, change), countsOf(change))
    return 'written'
  }

  remove(filter: LetterFilter): number {
    const going = this.letters().filter(
      (letter) => letter.state !== 'retrying' && matches(letter, filter),
    )
    for (const letter of going) this.#remove(letter, 'remove')
    return going.length
  }

  #remove(letter: DeadLetter, action: CountedAction): void {
    this.items = this.items.filter((item) => item.letter !== letter)
    this.#count(action, letter)
  }

  #put(letter: DeadLetter, counts: readonly CountedAction[] = []): void {
    for (const item of this.items) if (item.letter.id === letter.id) item.letter = letter
    for (const action of counts) this.#count(action, letter)
    for (const item of this.items)
      item.unmet = item.unmet.filter((id) => {
        const other = this.get(id)
        return other?.state !== 'resolved' && other?.archivedFrom !== 'resolved'
      })
  }

  #count(action: CountedAction, { queue, priority, retries, backoffMs }: DeadLetter): void {
    const same = (total: Total): boolean =>
      total.action === action && total.queue === queue && total.priority === priority
    const total = this.totals.find(same)
    if (!total)
      this.totals.push({
        action,
        queue,
        priority,
        count: 1,
        retries,
        maxRetries: retries,
        backoffMs,
      })
    else {
      total.count += 1
      total.retries += retries
      total.maxRetries = Math.max(total.maxRetries, retries)
      total.backoffMs += backoffMs
    }
  }
}

function byId(letters: DeadLetter[]): DeadLetter[] {
  return letters.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function dueMs(letter: DeadLetter): number {
  const due = letter.state === 'retrying' ? letter.lease!.expiresAt : letter.retryAt
  return toMs(due ?? letter.deadLetteredAt)
}

function score(letter: DeadLetter): number {
  return dueMs(letter) + rankOf(letter.priority) * ageingMs
}
