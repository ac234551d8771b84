/** Items with the same lane are processed in order. */
export interface InLane {
  readonly lane: string | undefined
}

/** Processes items of one lane in order: one is in process, and the others wait. */
export class Lanes<E extends InLane> {
  readonly #followers = new Map<string, E[]>()

  /** Returns whether the item may start now. If not, it waits. */
  enter(entry: E): boolean {
    const { lane } = entry
    if (lane === undefined) return true
    const followers = this.#followers.get(lane)
    if (followers) followers.push(entry)
    else this.#followers.set(lane, [])
    return !followers
  }

  /** Ends an item. Returns the next one of its lane, which may start now. */
  leave({ lane }: E): E | undefined {
    if (lane === undefined) return undefined
    const next = this.#followers.get(lane)?.shift()
    if (!next) this.#followers.delete(lane)
    return next
  }

  waiting(): E[] {
    return [...this.#followers.values()].flat()
  }

  /** Removes waiting items. */
  remove(isGone: (entry: E) => boolean): void {
    for (const [lane, followers] of this.#followers)
      this.#followers.set(
        lane,
        followers.filter((entry) => !isGone(entry)),
      )
  }
}
