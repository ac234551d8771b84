import type { RedriveError } from '../../errors.ts'
import type { Store } from '../../store.ts'

/** Why a store cannot be asked for anything now; undefined when it can. */
export type Problem = () => RedriveError | undefined

/** A store whose verbs reject while there is a problem. Watching stays possible: the store wakes its watchers once it is open. */
export function gated(store: Store, problem: Problem): Store {
  return rejecting(store, problem, {
    records: rejecting(store.records, problem, {}),
    watch: store.watch.bind(store),
    ...(store.within && {
      within: (client: unknown) => rejecting(store.within!(client), problem, {}),
    }),
  })
}

/** The thing with some members replaced; every other function of it rejects while there is a problem. */
function rejecting<T extends object>(thing: T, problem: Problem, members: object): T {
  return new Proxy(thing, {
    get(target, key): unknown {
      if (Object.hasOwn(members, key)) return members[key as keyof typeof members]
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        const error = problem()
        return error ? Promise.reject(error) : Reflect.apply(value, target, args)
      }
    },
  })
}
