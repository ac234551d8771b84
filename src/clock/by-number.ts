/** Above, V8 no longer takes a number for a place in a list. */
const maxNumber = 2 ** 31

/**
 * What comes and goes, by number. A `Map` is not for that: V8 gives it a new table every so often, and the table that it
 * had points to the new one. Once such a table is so old that only a full collection looks at it, it keeps alive whatever passed through all
 * those that came later.
 */
export class ByNumber<T> {
  readonly #all: Record<number, T> = {}
  #size = 0
  #last = 0

  get size(): number {
    return this.#size
  }

  /** A number that nothing has which is there. */
  next(): number {
    do this.#last = (this.#last + 1) % maxNumber
    while (this.#last in this.#all)
    return this.#last
  }

  set(number: number, value: T): void {
    if (!(number in this.#all)) this.#size += 1
    this.#all[number] = value
  }

  get(number: number): T | undefined {
    return this.#all[number]
  }

  /** What had the number, and has it no more. */
  take(number: number): T | undefined {
    const value = this.#all[number]
    if (value === undefined) return undefined
    delete this.#all[number]
    this.#size -= 1
    return value
  }

  numbers(): number[] {
    return Object.keys(this.#all).map(Number)
  }

  values(): T[] {
    return Object.values(this.#all)
  }
}
