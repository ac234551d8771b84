/** Items in ascending order. Adding and deleting cost a binary search and one array splice. */
export class SortedList<T> {
  readonly #compare: (a: T, b: T) => number
  readonly #items: T[] = []

  /** `compare` must not call two different items equal. */
  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#items.length
  }

  first(): T | undefined {
    return this.#items[0]
  }

  /** The first `count` items. */
  head(count: number): T[] {
    return this.#items.slice(0, count)
  }

  add(item: T): void {
    this.#items.splice(this.#indexOf(item), 0, item)
  }

  /** Does nothing if the list does not have the item. */
  delete(item: T): void {
    const index = this.#indexOf(item)
    if (this.#items[index] === item) this.#items.splice(index, 1)
  }

  /** Where the item is, or where it would be inserted. */
  #indexOf(item: T): number {
    let low = 0
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(this.#items[middle]!, item) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
