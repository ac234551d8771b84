import { RedriveError } from '../../src/errors.ts'
import { toMs } from '../../src/letter/time.ts'
import type { Store } from '../../src/store.ts'
import { pause } from './child.ts'
import { moment, type ChangeFact, type Ledger } from './ledger.ts'

export interface Witness {
  store: Store
  /** Acts at a moment at which the store does nothing for this process. */
  whenQuiet: (act: () => void) => Promise<void>
}

/**
 * The store as it is, with every claim, renewal and settle written to the ledger as the queue sees it. It sits
 * right below the queue, above a planted bug if there is one, and changes nothing.
 */
export function witness(
  store: Store,
  ledger: Ledger,
  beforeApply: (changes: readonly ChangeFact[]) => Promise<void>,
): Witness {
  const { inner, whenQuiet } = counted(store)
  let applies = 0
  const watched: Partial<Store> = {
    async claim(request) {
      const since = moment()
      const claim = await inner.claim(request)
      const claims = claim.letters.map(({ id, epoch, retries, lease }) => ({
        id,
        epoch,
        retries,
        expiresMs: lease ? toMs(lease.expiresAt) : Number.NaN,
      }))
      if (claims.length > 0) ledger.write({ e: 'claim.ok', since, claims })
      return claim
    },
    async renew(leases, leaseMs) {
      const refs = leases.map(({ id, epoch }) => ({ id, epoch }))
      const since = moment()
      const kept = await inner.renew(leases, leaseMs)
      const renewals = refs.map((ref, index) => ({ ...ref, kept: kept[index]! }))
      ledger.write({ e: 'renew.ok', since, renewals })
      return kept
    },
    async apply(changes) {
      const facts = changes.map(({ id, guard, action }) => ({
        id,
        action,
        ...('epoch' in guard ? { epoch: guard.epoch } : {}),
      }))
      const n = ++applies
      await beforeApply(facts)
      ledger.write({ e: 'apply.try', n, changes: facts })
      try {
        const results = await inner.apply(changes)
        ledger.write({ e: 'apply.ok', n, results })
        return results
      } catch (error) {
        ledger.write({ e: 'apply.fail', n, code: codeOf(error) })
        throw error
      }
    },
  }
  return { store: overlaid(inner, watched), whenQuiet }
}

/** The store, its records too, with the calls counted that are under way. New ones wait while quiet is wanted. */
function counted(store: Store): { inner: Store; whenQuiet: Witness['whenQuiet'] } {
  const underway = new Set<Promise<unknown>>()
  /** Resolves once nobody wants quiet. */
  let quiet = Promise.resolve()
  const called = (call: () => Promise<unknown>): Promise<unknown> => {
    const ended = call().finally(() => underway.delete(ended))
    underway.add(ended)
    return ended
  }
  const counting = <T extends object>(verbs: T): T =>
    new Proxy(verbs, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target)
        if (key === 'records') return counting(value as Store['records'])
        if (typeof value !== 'function') return value
        const call = (...args: unknown[]): unknown => Reflect.apply(value, target, args)
        if (key === 'watch') return call
        return async (...args: unknown[]): Promise<unknown> => {
          await quiet
          return called(() => call(...args) as Promise<unknown>)
        }
      },
    })
  const inTurn = async (before: Promise<void>, act: () => void): Promise<void> => {
    await before
    while (underway.size > 0) await pause(1)
    act()
  }
  const whenQuiet = (act: () => void): Promise<void> => (quiet = inTurn(quiet, act))
  return { inner: counting(store), whenQuiet }
}

/** A store with some of its verbs replaced. */
export function overlaid(store: Store, verbs: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, key) {
      const own = (verbs as Record<PropertyKey, unknown>)[key]
      if (own !== undefined) return own
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

export function codeOf(error: unknown): string {
  return error instanceof RedriveError ? error.code : String(error)
}
