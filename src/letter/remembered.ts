/** Memoises `work` by key, for at most `max` keys; clears the cache when it is full. */
export function remembered<K, V>(max: number, work: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>()
  return (key) => {
    const found = known.get(key)
    if (found !== undefined || known.has(key)) return found as V
    if (known.size >= max) known.clear()
    const value = work(key)
    known.set(key, value)
    return value
  }
}
