/** Memoizes `compute` by key, for at most `max` keys; clears the cache when it is full. */
export function memoize<K>(max: number, compute: (key: K) => string): (key: K) => string {
  const cache = new Map<K, string>()
  return (key) => {
    const cached = cache.get(key)
    if (cached !== undefined) return cached
    if (cache.size >= max) cache.clear()
    const value = compute(key)
    cache.set(key, value)
    return value
  }
}
