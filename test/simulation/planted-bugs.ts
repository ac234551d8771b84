import type { DeadLetter } from '../../src/letter/letter.ts'
import type { Change } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { Store } from '../../src/store.ts'
import type { PlantedBug } from './system.ts'

/** Replaces some methods of a store. */
function overrideVerbs(store: Store, verbs: Partial<Store>): Store {
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

async function findLeased(store: Store): Promise<DeadLetter[]> {
  return (await store.find({ state: 'retrying', limit: 1000, payload: true })).items
}

function without(key: keyof DeadLetter, letters: readonly DeadLetter[]): DeadLetter[] {
  const others = (letter: DeadLetter): [string, unknown][] =>
    Object.entries(letter).filter(([name]) => name !== key)
  return letters.map((letter) => Object.fromEntries(others(letter)) as unknown as DeadLetter)
}

const back = { lease: null, state: 'pending' } as const

/** Bugs that the simulation must find: in the shared store, or between it and one process. */
const shared = (plant: NonNullable<PlantedBug['shared']>): PlantedBug => ({ shared: plant })
const own = (plant: NonNullable<PlantedBug['own']>): PlantedBug => ({ own: plant })

export const plantedBugs: Record<string, PlantedBug> = {
  'a result is accepted under an old epoch': shared((store) =>
    overrideVerbs(store, {
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
    overrideVerbs(store, {
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
    overrideVerbs(store, {
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

  'a claim takes letters that are leased': shared((store) =>
    overrideVerbs(store, {
      async claim(request) {
        for (const letter of await findLeased(store))
          await force(store, letter, { ...back, retryAt: letter.updatedAt })
        return store.claim(request)
      },
    }),
  ),

  'expired letters are released by their id alone': shared((store, clock) => {
    let expired: string[] = []
    return overrideVerbs(store, {
      async claim(request) {
        const now = toTimestamp(clock.now())
        for (const letter of await store.get(expired))
          await force(store, letter, { ...back, retryAt: now })
        expired = (await findLeased(store))
          .filter(({ lease }) => lease!.expiresAt <= now)
          .map(({ id }) => id)
        return store.claim(request)
      },
    })
  }),

  'expired leases are never taken over': shared((store) =>
    overrideVerbs(store, {
      async claim(request) {
        await store.renew(await findLeased(store), request.leaseMs)
        return store.claim(request)
      },
    }),
  ),

  'a letter is acknowledged before it is stored': own((store) =>
    overrideVerbs(store, {
      async add(letters, capacity) {
        void store.add(letters, capacity).catch(() => {})
        return letters.map(() => ({ kind: 'added' as const }))
      },
    }),
  ),

  'a letter is acknowledged although the store did not answer': own((store) =>
    overrideVerbs(store, {
      async add(letters, capacity) {
        const added = letters.map(() => ({ kind: 'added' as const }))
        return store.add(letters, capacity).catch(() => added)
      },
    }),
  ),

  'an unknown outcome is treated as success': own((store) =>
    overrideVerbs(store, {
      async apply(changes) {
        return store.apply(changes).catch(() => changes.map(() => 'written' as const))
      },
    }),
  ),

  'leases are not renewed': own((store) =>
    overrideVerbs(store, {
      async renew(leases) {
        return leases.map(() => true)
      },
    }),
  ),

  'a claimed letter is forgotten': own((store) =>
    overrideVerbs(store, {
      async claim(request) {
        const claim = await store.claim(request)
        return { ...claim, letters: claim.letters.slice(0, 3) }
      },
    }),
  ),

  'a conflict is answered as written': shared((store) =>
    overrideVerbs(store, {
      async apply(changes) {
        return (await store.apply(changes)).map(() => 'written' as const)
      },
    }),
  ),

  'the same dedupe key is stored twice': shared((store) =>
    overrideVerbs(store, {
      async add(letters, capacity) {
        return store.add(without('dedupeKey', letters), capacity)
      },
    }),
  ),

  'lanes are ignored': shared((store) =>
    overrideVerbs(store, {
      async add(letters, capacity) {
        return store.add(without('lane', letters), capacity)
      },
    }),
  ),

  'dependencies are ignored': shared((store) =>
    overrideVerbs(store, {
      async add(letters, capacity) {
        return store.add(without('dependsOn', letters), capacity)
      },
    }),
  ),

  'a removal deletes leased letters too': shared((store) =>
    overrideVerbs(store, {
      async remove(which) {
        for (const letter of await findLeased(store)) await force(store, letter, back)
        return store.remove(which)
      },
    }),
  ),

  'capacity is ignored': shared((store) =>
    overrideVerbs(store, {
      async add(letters) {
        return store.add(letters)
      },
    }),
  ),

  'bytes are converted to a string': shared((store) =>
    overrideVerbs(store, {
      async add(letters, capacity) {
        const converted = letters.map((letter) => {
          const bytes = Buffer.from(`${Buffer.from(letter.payload.bytes).toString().trimEnd()} `)
          return { ...letter, payload: { ...letter.payload, bytes } }
        })
        return store.add(converted, capacity)
      },
    }),
  ),

  'a tally ignores removals': shared((store) => {
    let removed = 0
    return overrideVerbs(store, {
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

  'totals count repeated results twice': shared((store) => {
    let repeated = 0
    return overrideVerbs(store, {
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
