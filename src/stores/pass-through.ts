/** A thing with some of its members replaced or added; all others are its own, whatever they come to be. */
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
