/** Who wants to hear that letters may have become due. */
export interface Watchers {
  readonly size: number
  /** Each stands for itself, even when two have one function. Answers how to leave. */
  add(listener: () => void): () => void
  /** What a watcher throws is its own: it must not be able to fail a write that has happened. */
  tell(): void
  clear(): void
}

export function watchers(): Watchers {
  const all = new Set<() => void>()
  return {
    get size() {
      return all.size
    },
    add(listener) {
      const watcher = (): void => listener()
      all.add(watcher)
      return () => void all.delete(watcher)
    },
    tell() {
      for (const watcher of all) {
        try {
          watcher()
        } catch {
          // Its own, as said above.
        }
      }
    },
    clear: () => all.clear(),
  }
}
