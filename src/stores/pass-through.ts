/** A proxy that replaces or adds some members of an object. All others are read from the object. */
export function passThrough<T extends object, M extends object>(thing: T, members: M): T & M {
  return new Proxy(thing, {
    get(target, key): unknown {
      if (Object.hasOwn(members, key)) return members[key as keyof M]
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    has: (target, key) => Object.hasOwn(members, key) || Reflect.has(target, key),
  }) as T & M
}
