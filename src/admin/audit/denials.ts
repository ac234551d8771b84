const windowMs = 60_000
const maxKeys = 1000

/**
 * Limits the entries for denied attempts: of equal attempts, one a minute is recorded and the
 * others are counted, so that nobody without rights can fill the store.
 */
export class Denials {
  readonly #recent = new Map<string, { fromMs: number; repeats: number }>()

  /** The attempts without an entry since the last entry. Undefined: do not record this one. */
  count(key: string, nowMs: number): number | undefined {
    const known = this.#recent.get(key)
    if (known && nowMs - known.fromMs < windowMs) {
      known.repeats += 1
      return undefined
    }
    this.#recent.delete(key)
    this.#recent.set(key, { fromMs: nowMs, repeats: 0 })
    if (this.#recent.size > maxKeys) this.#recent.delete(this.#recent.keys().next().value!)
    return known?.repeats ?? 0
  }
}
