/** Memoises `work` by key, for at most `max` keys; clears the cache when it is full. */
export function remembered<K>(most: number, work: (key: K) => string): (key: K) => string {
  const known = new Map<K, string>()
  return (key) => {
    const found = known.get(key)
    if (found !== undefined) return found
    if (known.size >= most) known.clear()
    const value = work(key)
    known.set(key, value)
    return value
  }
}
