/** What must go one after the other has the same lane. */
export interface InLane {
  readonly lane: string | undefined
}

/** Keeps those with the same lane in order: one is on its way, and the others follow. */
export class Lanes<E extends InLane> {
  readonly #followers = new Map<string, E[]>()

  /** Whether it may go now. If not, it follows. */
  enter(entry: E): boolean {
    const { lane } = entry
    if (lane === undefined) return true
    const followers = this.#followers.get(lane)
    if (followers) followers.push(entry)
    else this.#followers.set(lane, [])
    return !followers
  }

  /** It is over. Whoever follows it may go now. */
  leave({ lane }: E): E | undefined {
    if (lane === undefined) return undefined
    const next = this.#followers.get(lane)?.shift()
    if (!next) this.#followers.delete(lane)
    return next
  }

  waiting(): E[] {
    return [...this.#followers.values()].flat()
  }

  /** They follow no longer. */
  remove(isGone: (entry: E) => boolean): void {
    for (const [lane, followers] of this.#followers)
      this.#followers.set(
        lane,
        followers.filter((entry) => !isGone(entry)),
      )
  }
}
