import type { RedriveError } from '../../errors.ts'
import type { Store } from '../../store.ts'

type FindProblem = () => RedriveError | undefined

/** A store whose calls reject while there is a problem. `watch` works: it wakes after the open. */
export function rejectWhile(store: Store, findProblem: FindProblem): Store {
  return wrap(store, findProblem, {
    records: wrap(store.records, findProblem, {}),
    watch: store.watch.bind(store),
    ...(store.within && {
      within: (client: unknown) => wrap(store.within!(client), findProblem, {}),
    }),
  })
}

function wrap<T extends object>(thing: T, findProblem: FindProblem, members: object): T {
  return new Proxy(thing, {
    get(target, key): unknown {
      if (Object.hasOwn(members, key)) return members[key as keyof typeof members]
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        const error = findProblem()
        return error ? Promise.reject(error) : Reflect.apply(value, target, args)
      }
    },
  })
}
