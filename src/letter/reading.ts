// Reads values from outside. A getter or proxy that throws counts as absent.

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

/** A property of any value. Undefined if the value is not an object, or if reading throws. */
export function read(thing: unknown, key: PropertyKey): unknown {
  if (!isObject(thing)) return undefined
  try {
    return (thing as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

/** Whether the value has all of these methods. */
export function hasMethods(value: unknown, ...names: PropertyKey[]): boolean {
  return names.every((name) => typeof read(value, name) === 'function')
}
