import { RedriveError } from '../../src/errors.ts'
import { toMs } from '../../src/letter/time.ts'
import type { Store } from '../../src/store.ts'
import { pause } from './child.ts'
import { override } from './override.ts'
import { readClocks, type ChangeFact, type Ledger } from './ledger.ts'

export interface RecordingStore {
  store: Store
  /** Runs `act` while no store call of this process is in flight. */
  whenQuiet: (act: () => void) => Promise<void>
}

/**
 * Wraps the store and writes every claim, renewal and settle to the ledger as the queue sees it. It
 * is directly below the queue, above a planted bug if there is one, and changes nothing.
 */
export function recordStore(
  store: Store,
  ledger: Ledger,
  beforeApply: (changes: readonly ChangeFact[]) => Promise<void>,
): RecordingStore {
  const { inner, whenQuiet } = countCalls(store)
  let applies = 0
  const recording: Partial<Store> = {
    async claim(request) {
      const since = readClocks()
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
      const since = readClocks()
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
  return { store: override(inner, recording), whenQuiet }
}

/** Counts the calls in flight, also those of `records`. New calls wait while quiet is requested. */
function countCalls(store: Store): { inner: Store; whenQuiet: RecordingStore['whenQuiet'] } {
  const inFlight = new Set<Promise<unknown>>()
  /** Resolves once quiet is no longer requested. */
  let quiet = Promise.resolve()
  const track = (call: () => Promise<unknown>): Promise<unknown> => {
    const ended = call().finally(() => inFlight.delete(ended))
    inFlight.add(ended)
    return ended
  }
  const wrapVerbs = <T extends object>(verbs: T): T =>
    new Proxy(verbs, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target)
        if (key === 'records') return wrapVerbs(value as Store['records'])
        if (typeof value !== 'function') return value
        const call = (...args: unknown[]): unknown => Reflect.apply(value, target, args)
        if (key === 'watch') return call
        return async (...args: unknown[]): Promise<unknown> => {
          await quiet
          return track(() => call(...args) as Promise<unknown>)
        }
      },
    })
  const runWhenQuiet = async (before: Promise<void>, act: () => void): Promise<void> => {
    await before
    while (inFlight.size > 0) await pause(1)
    act()
  }
  const whenQuiet = (act: () => void): Promise<void> => (quiet = runWhenQuiet(quiet, act))
  return { inner: wrapVerbs(store), whenQuiet }
}

export function codeOf(error: unknown): string {
  return error instanceof RedriveError ? error.code : String(error)
}
