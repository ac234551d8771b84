/** Ways to look at what a stranger gave us: nothing that it does when it is read gets through. */

export function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

export function isList(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value)
  } catch {
    return false // A revoked proxy.
  }
}

/** A property of anything: what throws when it is read is as good as absent. */
export function read(thing: unknown, key: PropertyKey): unknown {
  if (!isObject(thing)) return undefined
  try {
    return (thing as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}
