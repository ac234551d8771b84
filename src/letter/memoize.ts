/** Memoizes `compute` by key, for at most `max` keys; clears the cache when it is full. */
export function memoize<K, V>(max: number, compute: (key: K) => V): (key: K) => V {
  const cache = new Map<K, V>()
  return (key) => {
    const cached = cache.get(key)
    if (cached !== undefined || cache.has(key)) return cached as V
    if (cache.size >= max) cache.clear()
    const value = compute(key)
    cache.set(key, value)
    return value
  }
}
