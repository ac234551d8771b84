import type { DeadLetter } from '../../src/letter/letter.ts'
import type { Change } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { Store } from '../../src/store.ts'
import type { Plant } from './house.ts'

/** Replaces some verbs of a store. */
function altered(store: Store, verbs: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, key) {
      const found: unknown = key in verbs ? verbs[key as keyof Store] : target[key as keyof Store]
      return typeof found === 'function' ? found.bind(key in verbs ? verbs : target) : found
    },
  })
}

/** Writes to a letter whatever its version. */
async function force(store: Store, letter: DeadLetter, set: Change['set']): Promise<void> {
  const to = set.state ?? letter.state
  const entry = {
    at: letter.updatedAt,
    actor: 'bug',
    action: 'release',
    from: letter.state,
    to,
  } as const
  await store.apply([
    { id: letter.id, guard: { version: letter.version }, action: 'release', set, entry },
  ])
}

async function leased(store: Store): Promise<DeadLetter[]> {
  return (await store.find({ state: 'retrying', limit: 1000, payload: true })).items
}

function without(key: keyof DeadLetter, letters: readonly DeadLetter[]): DeadLetter[] {
  const others = (letter: DeadLetter): [string, unknown][] =>
    Object.entries(letter).filter(([name]) => name !== key)
  return letters.map((letter) => Object.fromEntries(others(letter)) as unknown as DeadLetter)
}

const back = { lease: null, state: 'pending' } as const

/** Bugs that the simulation must find, each in the store that all processes share, or on the way to it. */
const shared = (plant: NonNullable<Plant['shared']>): Plant => ({ shared: plant })
const own = (plant: NonNullable<Plant['own']>): Plant => ({ own: plant })

export const planted: Record<string, Plant> = {
  'a result is accepted under an old epoch': shared((store) =>
    altered(store, {
      async apply(changes) {
        const letters = await store.get(changes.map(({ id }) => id))
        const versions = new Map(letters.map(({ id, version }) => [id, version]))
        return store.apply(
          changes.map((change) => {
            const version = versions.get(change.id)
            return 'epoch' in change.guard && version !== undefined
              ? { ...change, guard: { version } }
              : change
          }),
        )
      },
    }),
  ),

  'a lease is renewed under an old epoch': shared((store) =>
    altered(store, {
      async renew(leases, leaseMs) {
        const letters = await store.get(leases.map(({ id }) => id))
        const epochs = new Map(letters.map(({ id, epoch }) => [id, epoch]))
        return store.renew(
          leases.map(({ id, epoch }) => ({ id, epoch: epochs.get(id) ?? epoch })),
          leaseMs,
        )
      },
    }),
  ),

  'a claim does not count the retry': shared((store) =>
    altered(store, {
      async claim(request) {
        const claim = await store.claim(request)
        for (const letter of claim.letters) {
          letter.retries -= 1
          await force(store, letter, { retries: letter.retries })
          letter.version += 1
        }
        return claim
      },
    }),
  ),

  'a claim takes letters that somebody holds': shared((store) =>
    altered(store, {
      async claim(request) {
        for (const letter of await leased(store))
          await force(store, letter, { ...back, retryAt: letter.updatedAt })
        return store.claim(request)
      },
    }),
  ),

  'a rescuer puts letters back by their id alone': shared((store, clock) => {
    let lapsed: string[] = []
    return altered(store, {
      async claim(request) {
        const now = toTimestamp(clock.now())
        for (const letter of await store.get(lapsed))
          await force(store, letter, { ...back, retryAt: now })
        lapsed = (await leased(store))
          .filter(({ lease }) => lease!.expiresAt <= now)
          .map(({ id }) => id)
        return store.claim(request)
      },
    })
  }),

  'lapsed leases are never taken over': shared((store) =>
    altered(store, {
      async claim(request) {
        await store.renew(await leased(store), request.leaseMs)
        return store.claim(request)
      },
    }),
  ),

  'a letter is acknowledged before it is kept': own((store) =>
    altered(store, {
      async add(letters, capacity) {
        void store.add(letters, capacity).catch(() => {})
        return letters.map(() => ({ kind: 'added' as const }))
      },
    }),
  ),

  'a letter is acknowledged though the store did not answer': own((store) =>
    altered(store, {
      async add(letters, capacity) {
        const added = letters.map(() => ({ kind: 'added' as const }))
        return store.add(letters, capacity).catch(() => added)
      },
    }),
  ),

  'an unknown outcome is taken for success': own((store) =>
    altered(store, {
      async apply(changes) {
        return store.apply(changes).catch(() => changes.map(() => 'written' as const))
      },
    }),
  ),

  'leases are not renewed': own((store) =>
    altered(store, {
      async renew(leases) {
        return leases.map(() => true)
      },
    }),
  ),

  'a claimed letter is forgotten': own((store) =>
    altered(store, {
      async claim(request) {
        const claim = await store.claim(request)
        return { ...claim, letters: claim.letters.slice(0, 3) }
      },
    }),
  ),

  'a conflict is answered as written': shared((store) =>
    altered(store, {
      async apply(changes) {
        return (await store.apply(changes)).map(() => 'written' as const)
      },
    }),
  ),

  'the same key is kept twice': shared((store) =>
    altered(store, {
      async add(letters, capacity) {
        return store.add(without('dedupeKey', letters), capacity)
      },
    }),
  ),

  'lanes are ignored': shared((store) =>
    altered(store, {
      async add(letters, capacity) {
        return store.add(without('lane', letters), capacity)
      },
    }),
  ),

  'dependencies are ignored': shared((store) =>
    altered(store, {
      async add(letters, capacity) {
        return store.add(without('dependsOn', letters), capacity)
      },
    }),
  ),

  'a removal takes leased letters too': shared((store) =>
    altered(store, {
      async remove(which) {
        for (const letter of await leased(store)) await force(store, letter, back)
        return store.remove(which)
      },
    }),
  ),

  'capacity is ignored': shared((store) =>
    altered(store, {
      async add(letters) {
        return store.add(letters)
      },
    }),
  ),

  'bytes pass through text': shared((store) =>
    altered(store, {
      async add(letters, capacity) {
        const texted = letters.map((letter) => {
          const bytes = Buffer.from(`${Buffer.from(letter.payload.bytes).toString().trimEnd()} `)
          return { ...letter, payload: { ...letter.payload, bytes } }
        })
        return store.add(texted, capacity)
      },
    }),
  ),

  'a tally forgets removals': shared((store) => {
    let removed = 0
    return altered(store, {
      async remove(which) {
        const count = await store.remove(which)
        removed += count
        return count
      },
      async tally(by, filter) {
        const tally = await store.tally(by, filter)
        for (const key of tally.keys()) tally.set(key, tally.get(key)! + removed)
        return tally
      },
    })
  }),

  'totals count results twice that came twice': shared((store) => {
    let repeated = 0
    return altered(store, {
      async apply(changes) {
        const results = await store.apply(changes)
        repeated += results.filter((result) => result === 'conflict').length
        return results
      },
      async totals() {
        return (await store.totals()).map((total) => ({ ...total, count: total.count + repeated }))
      },
    })
  }),
}
