/** Replaces some members of an object. Its own methods can still use private fields. */
export function override<T extends object>(inner: T, members: Partial<T>): T {
  return new Proxy(inner, {
    get(target, key) {
      const own = (members as Record<PropertyKey, unknown>)[key]
      if (own !== undefined) return own
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
