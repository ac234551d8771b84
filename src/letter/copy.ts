/**
 * A deep copy. Handles what letters and records consist of: plain objects, arrays, bytes and
 * primitives. Several times faster than structuredClone.
 */
export function copyOf<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyOf) as T
  if (value instanceof Uint8Array) return Uint8Array.from(value) as T
  // The spread makes every key an own property, so that a key named __proto__ is safe below.
  const copy = { ...value } as Record<string, unknown>
  for (const key of Object.keys(copy)) {
    const inner = copy[key]
    if (typeof inner === 'object' && inner !== null) copy[key] = copyOf(inner)
  }
  return copy as T
}
