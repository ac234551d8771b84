import { states, type DeadLetter, type State } from '../../letter/letter.ts'
import { sortKey, type CursorPosition, type LetterFilter, type Order } from '../../letter/query.ts'
import { sourceIdOf } from '../../letter/source-id.ts'
import { byId, type Kept } from './kept.ts'
import { merge, Sorted } from './sorted.ts'

/** The letters of one queue in one state: all by id, and those that have such a moment by that. */
interface Shelf {
  id: Sorted<Kept>
  due: Sorted<Kept>
  settled: Sorted<Kept>
}

/** Where letters are found: candidates in order, which whoever asks still holds against the filter. */
export class Lists {
  readonly #letters = new Map<string, Kept>()
  readonly #queues = new Map<string, Map<State, Shelf>>()
  readonly #groups = new Map<string, Sorted<Kept>>()
  readonly #bySource = new Map<string, Set<Kept>>()
  readonly #dependent = new Sorted(byId)
  readonly #expiring = new Sorted(expiresBefore)

  get(id: string): Kept | undefined {
    return this.#letters.get(id)
  }

  /**
   * Takes a letter from one standing to the next; either may be nowhere. Lists sort by what the letter says, so it
   * leaves them as it was and enters them as it is. Lists in which nothing would change are left alone.
   */
  move(kept: Kept, before: DeadLetter | undefined, after: DeadLetter | undefined): void {
    const stays = before !== undefined && before.state === after?.state
    const same = (field: 'retryAt' | 'settledAt'): boolean =>
      stays && before[field] === after?.[field]
    const sameDue = same('retryAt')
    const sameSettled = same('settledAt')
    const sameGroup = before?.fingerprint === after?.fingerprint
    const sameEnd = before?.expiresAt === after?.expiresAt
    if (before) {
      const shelf = this.#shelf(before)
      if (!stays) shelf.id.delete(kept)
      if (!sameDue && before.retryAt !== undefined) shelf.due.delete(kept)
      if (!sameSettled && before.settledAt !== undefined) shelf.settled.delete(kept)
      if (!sameEnd && before.expiresAt !== undefined) this.#expiring.delete(kept)
      if (!sameGroup) this.#leaveGroup(kept, before.fingerprint)
      if (shelf.id.size === 0) this.#clear(before)
    }
    if (!after) return this.#forget(kept)
    kept.letter = after
    kept.retryKey = sortKey(after, 'due')
    kept.settledKey = sortKey(after, 'settled')
    const shelf = this.#shelf(after)
    if (!stays) shelf.id.add(kept)
    if (!sameDue && after.retryAt !== undefined) shelf.due.add(kept)
    if (!sameSettled && after.settledAt !== undefined) shelf.settled.add(kept)
    if (!sameEnd && after.expiresAt !== undefined) this.#expiring.add(kept)
    if (!sameGroup) this.#enterGroup(kept, after.fingerprint)
    if (!before) this.#register(kept)
  }

  /** From a position on, in order. All that match are among them, and seldom many that do not. */
  from(filter: LetterFilter, order: Order, position?: CursorPosition): Iterable<Kept> {
    const few = this.#few(filter)
    if (few) {
      const left = few.filter((kept) => !position || comesAfter(kept, position))
      return left.sort((a, b) => (goesBefore[order](a, b) ? -1 : 1))
    }
    return merge(this.#sources(filter, order, position), goesBefore[order])
  }

  /** All that may match, in whatever order is read fastest. */
  any(filter: LetterFilter): Iterable<Kept> {
    return this.from(filter, filter.settledBefore === undefined ? 'oldest' : 'settled')
  }

  /** The candidates themselves, where they are few enough to be put in order on the spot. */
  #few({ ids, sourceId, expiresBefore }: LetterFilter): Kept[] | undefined {
    if (ids) return [...new Set(ids)].flatMap((id) => this.#letters.get(id) ?? [])
    if (sourceId !== undefined) return [...(this.#bySource.get(sourceId.toWellFormed()) ?? [])]
    if (expiresBefore === undefined) return undefined
    const few: Kept[] = []
    for (const kept of this.#expiring.ascend()) {
      if (kept.letter.expiresAt! >= expiresBefore) break
      few.push(kept)
    }
    return few
  }

  /** Lists that together hold all that may match, each from the position on. */
  #sources(filter: LetterFilter, order: Order, position?: CursorPosition): Iterable<Kept>[] {
    if (order === 'due' || order === 'settled')
      return this.#shelves(filter).map((shelf) => byMoment(shelf, order, filter, position))
    const group = filter.group === undefined ? undefined : this.#groups.get(filter.group)
    if (filter.group !== undefined && !group) return []
    const lists = group
      ? [group]
      : filter.dependent
        ? [this.#dependent]
        : this.#shelves(filter).map((shelf) => shelf.id)
    const ahead = (kept: Kept): boolean => !position || comesAfter(kept, position)
    return lists.map((list) =>
      order === 'newest' ? list.descend(ahead) : list.ascend((kept) => !ahead(kept)),
    )
  }

  #shelves({ queue, state }: LetterFilter): Shelf[] {
    const queues = queue === undefined ? this.#queues.keys() : new Set(listed(queue))
    const wanted = states.filter((one) =>
      state === undefined ? one !== 'archived' : listed(state).includes(one),
    )
    return [...queues].flatMap((name) => {
      const shelves = this.#queues.get(name)
      return wanted.flatMap((one) => shelves?.get(one) ?? [])
    })
  }

  #shelf({ queue, state }: DeadLetter): Shelf {
    let shelves = this.#queues.get(queue)
    if (!shelves) this.#queues.set(queue, (shelves = new Map()))
    let shelf = shelves.get(state)
    if (!shelf) {
      const { due, settled } = goesBefore
      shelf = { id: new Sorted(byId), due: new Sorted(due), settled: new Sorted(settled) }
      shelves.set(state, shelf)
    }
    return shelf
  }

  #clear({ queue, state }: DeadLetter): void {
    const shelves = this.#queues.get(queue)
    shelves?.delete(state)
    if (shelves?.size === 0) this.#queues.delete(queue)
  }

  #enterGroup(kept: Kept, fingerprint: string): void {
    let group = this.#groups.get(fingerprint)
    if (!group) this.#groups.set(fingerprint, (group = new Sorted(byId)))
    group.add(kept)
  }

  #leaveGroup(kept: Kept, fingerprint: string): void {
    const group = this.#groups.get(fingerprint)
    group?.delete(kept)
    if (group?.size === 0) this.#groups.delete(fingerprint)
  }

  #register(kept: Kept): void {
    this.#letters.set(kept.id, kept)
    if (kept.letter.dependsOn?.length) this.#dependent.add(kept)
    const source = sourceIdOf(kept.letter)
    if (source === undefined) return
    const others = this.#bySource.get(source)
    if (others) others.add(kept)
    else this.#bySource.set(source, new Set([kept]))
  }

  #forget(kept: Kept): void {
    this.#letters.delete(kept.id)
    if (kept.letter.dependsOn?.length) this.#dependent.delete(kept)
    const source = sourceIdOf(kept.letter)
    const others = source === undefined ? undefined : this.#bySource.get(source)
    others?.delete(kept)
    if (others?.size === 0) this.#bySource.delete(source!)
  }
}

const goesBefore: Record<Order, (a: Kept, b: Kept) => boolean> = {
  newest: (a, b) => a.id > b.id,
  oldest: byId,
  due: (a, b) => keyBefore(a, b, a.retryKey, b.retryKey),
  settled: (a, b) => keyBefore(a, b, a.settledKey, b.settledKey),
}

function expiresBefore(a: Kept, b: Kept): boolean {
  return keyBefore(a, b, a.letter.expiresAt!, b.letter.expiresAt!)
}

function keyBefore(a: Kept, b: Kept, first: string, second: string): boolean {
  return first < second || (first === second && a.id < b.id)
}

function comesAfter(kept: Kept, { order, key, id }: CursorPosition): boolean {
  if (order === 'newest') return kept.id < id
  const own = sortKey(kept.letter, order)
  return own > key || (own === key && kept.id > id)
}

/** A shelf by a moment: first who has it, then by id who has none. */
function* byMoment(
  shelf: Shelf,
  order: 'due' | 'settled',
  { settledBefore }: LetterFilter,
  position: CursorPosition | undefined,
): Generator<Kept> {
  const passed = (kept: Kept): boolean => position !== undefined && !comesAfter(kept, position)
  for (const kept of shelf[order].ascend(passed)) {
    if (
      order === 'settled' &&
      settledBefore !== undefined &&
      kept.letter.settledAt! >= settledBefore
    )
      return
    yield kept
  }
  if (shelf[order].size === shelf.id.size || (order === 'settled' && settledBefore !== undefined))
    return
  const field = order === 'due' ? 'retryAt' : 'settledAt'
  for (const kept of shelf.id.ascend())
    if (kept.letter[field] === undefined && !passed(kept)) yield kept
}

function listed<T>(value: T | T[]): T[] {
  return Array.isArray(value) ? value : [value]
}
