/** What stands on a roll carries its place there. */
export interface OnRoll {
  at: number
}

/** Those who come and go, in no order. A `Set` keeps alive who has left, as `ByNumber` tells of a `Map`. */
export class Roll<T extends OnRoll> {
  readonly #all: T[] = []

  get size(): number {
    return this.#all.length
  }

  add(one: T): void {
    one.at = this.#all.length
    this.#all.push(one)
  }

  has(one: T): boolean {
    return this.#all[one.at] === one
  }

  /** Whoever stands last takes the place. Answers whether it stood there. */
  delete(one: T): boolean {
    if (!this.has(one)) return false
    const last = this.#all.pop()!
    if (last === one) return true
    last.at = one.at
    this.#all[last.at] = last
    return true
  }

  find(fits: (one: T) => boolean): T | undefined {
    return this.#all.find(fits)
  }

  /** All who stand there now, whoever leaves meanwhile. */
  list(): T[] {
    return [...this.#all]
  }
}
