/** Listeners for letters that may have become due. */
export class Watchers {
  readonly #watchers = new Set<() => void>()

  get size(): number {
    return this.#watchers.size
  }

  /** Adds a listener, even if the same function was added before. Returns how to remove it. */
  add(listener: () => void): () => void {
    const watcher = (): void => listener()
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /** Calls all listeners. Their errors are ignored: they must not fail a completed write. */
  notify(): void {
    for (const watcher of this.#watchers)
      try {
        watcher()
      } catch {
        // Ignored, as documented.
      }
  }

  clear(): void {
    this.#watchers.clear()
  }
}
