/** Chunks are split at twice this size, so that an insertion moves at most this many items or so. */
const chunkSize = 256

/**
 * Items in order, in chunks: finding, adding and deleting cost a binary search and a move within one small array,
 * however many items there are. No two items may be equal in order.
 */
export class Sorted<T> {
  readonly #before: (a: T, b: T) => boolean
  readonly #chunks: T[][] = []
  #size = 0

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before
  }

  get size(): number {
    return this.#size
  }

  first(): T | undefined {
    return this.#chunks[0]?.[0]
  }

  add(item: T): void {
    this.#size += 1
    if (this.#append(item)) return
    const goesAfter = (other: T): boolean => this.#before(other, item)
    const at = this.#chunkOf(goesAfter)
    const chunk = this.#chunks[at]!
    chunk.splice(firstNot(chunk, goesAfter), 0, item)
    if (chunk.length > 2 * chunkSize) this.#chunks.splice(at + 1, 0, chunk.splice(chunkSize))
  }

  /** Most items come in order: ids and moments ascend. They go to the end without a search, and fill their chunks. */
  #append(item: T): boolean {
    const chunk = this.#chunks.at(-1)
    if (chunk && !this.#before(chunk.at(-1)!, item)) return false
    if (chunk && chunk.length < 2 * chunkSize) chunk.push(item)
    else this.#chunks.push([item])
    return true
  }

  /** Does nothing when the item is not there. */
  delete(item: T): void {
    const goesAfter = (other: T): boolean => this.#before(other, item)
    const at = this.#chunkOf(goesAfter)
    const chunk = this.#chunks[at]
    if (!chunk) return
    const within = firstNot(chunk, goesAfter)
    if (chunk[within] !== item) return
    this.#size -= 1
    if (chunk.length === 1) this.#chunks.splice(at, 1)
    else chunk.splice(within, 1)
  }

  /** From the first item that is not passed, upwards. `passed` holds for a beginning of the order. */
  *ascend(passed: (item: T) => boolean = () => false): Generator<T> {
    let at = this.#chunkOf(passed)
    let within = firstNot(this.#chunks[at] ?? [], passed)
    for (; at < this.#chunks.length; at++, within = 0) {
      const chunk = this.#chunks[at]!
      for (; within < chunk.length; within++) yield chunk[within]!
    }
  }

  /** From the last item that is still ahead, downwards. `ahead` holds for a beginning of the order. */
  *descend(ahead: (item: T) => boolean = () => true): Generator<T> {
    let at = this.#chunkOf(ahead)
    let within = firstNot(this.#chunks[at] ?? [], ahead) - 1
    for (;;) {
      const chunk = this.#chunks[at] ?? []
      for (; within >= 0; within--) yield chunk[within]!
      at -= 1
      if (at < 0) return
      within = this.#chunks[at]!.length - 1
    }
  }

  /** The first chunk that does not pass whole; the number of chunks when all do. */
  #chunkOf(passed: (item: T) => boolean): number {
    return firstNot(this.#chunks, (chunk) => passed(chunk.at(-1)!))
  }
}

/** Where the beginning ends for which the test holds. */
function firstNot<T>(items: readonly T[], test: (item: T) => boolean): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (test(items[middle]!)) low = middle + 1
    else high = middle
  }
  return low
}

/** Several ordered sources as one. Of each, no more is read than is needed. */
export function* merge<T>(sources: Iterable<T>[], before: (a: T, b: T) => boolean): Generator<T> {
  /** The next one last, where it is cheap to take. */
  const heads: { item: T; rest: Iterator<T> }[] = []
  const enter = (rest: Iterator<T>): void => {
    const { done, value: item } = rest.next()
    if (done) return
    heads.splice(
      firstNot(heads, (other) => before(item, other.item)),
      0,
      { item, rest },
    )
  }
  for (const source of sources) enter(source[Symbol.iterator]())
  for (let head = heads.pop(); head; head = heads.pop()) {
    yield head.item
    enter(head.rest)
  }
}
