/** Does work once for each key. It knows what so many keys came to; when there are more, it forgets them all and begins anew. */
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
