import { copyStore } from '../../../src/transfer/copy/copy.ts'
import type { Store } from '../../../src/store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'

/*
 * A copy that does not live to its end: `child.ts FROM TO SOURCE VERB N before|after`. At the nth
 * call of that verb of the target it kills itself, before the call or after its answer.
 */
const [fromPath, toPath, source, verb, nth, when] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
  string,
]
let left = Number(nth)

/** The same object, which kills the process when the verb has been called often enough. */
function deadly<T extends object>(target: T): T {
  return new Proxy(target, {
    get(_, name) {
      const value = Reflect.get(target, name) as unknown
      if (name === 'records') return deadly(value as object)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]) => {
        const dies = name === verb && --left === 0
        if (dies && when === 'before') process.kill(process.pid, 'SIGKILL')
        const answer: unknown = await Reflect.apply(value, target, args)
        if (dies) process.kill(process.pid, 'SIGKILL')
        return answer
      }
    },
  })
}

const [from, to]: Store[] = [fromPath, toPath].map((path) => sqliteStore({ path }))
await from!.open()
await to!.open()
await copyStore(from!, deadly(to!), { source })
await from!.close()
await to!.close()
