/** Something that is hidden until a time. */
export interface Hiding {
  hiddenUntilMs: number
  /** Decides between equal times. */
  readonly seq: number
  /** Index in the heap. -1: not in the heap. */
  place: number
}

/** A binary heap by time. Items know their index, so that any can be removed without a search. */
export class Hidden<T extends Hiding> {
  readonly #heap: T[] = []

  first(): T | undefined {
    return this.#heap[0]
  }

  add(item: T): void {
    this.#heap.push(item)
    this.#rise(item, this.#heap.length - 1)
  }

  /** Does nothing if the item is not in the heap. */
  remove(item: T): void {
    const { place } = item
    if (place === -1) return
    item.place = -1
    const last = this.#heap.pop()!
    if (last === item) return
    this.#put(last, place)
    this.#settle(last)
  }

  /** Restores the order after the time of an item has changed. */
  update(item: T): void {
    if (item.place !== -1) this.#settle(item)
  }

  clear(): void {
    for (const item of this.#heap) item.place = -1
    this.#heap.length = 0
  }

  #settle(item: T): void {
    this.#rise(item, item.place)
    this.#sink(item, item.place)
  }

  #rise(item: T, from: number): void {
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = this.#heap[above]!
      if (!before(item, parent)) break
      this.#put(parent, place)
      place = above
    }
    this.#put(item, place)
  }

  #sink(item: T, from: number): void {
    let place = from
    for (;;) {
      let below = 2 * place + 1
      if (below >= this.#heap.length) break
      const right = this.#heap[below + 1]
      if (right && before(right, this.#heap[below]!)) below += 1
      const child = this.#heap[below]!
      if (!before(child, item)) break
      this.#put(child, place)
      place = below
    }
    this.#put(item, place)
  }

  #put(item: T, place: number): void {
    this.#heap[place] = item
    item.place = place
  }
}

function before(a: Hiding, b: Hiding): boolean {
  return a.hiddenUntilMs === b.hiddenUntilMs ? a.seq < b.seq : a.hiddenUntilMs < b.hiddenUntilMs
}
