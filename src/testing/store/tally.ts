import assert from 'node:assert/strict'
import type { DeadLetter } from '../../letter/letter.ts'
import {
  archive,
  edit,
  exhaust,
  park,
  release,
  reschedule,
  resolve,
  restore,
  retry,
} from '../../letter/moves.ts'
import { matches, type LetterFilter } from '../../letter/query.ts'
import { tallyKeys, type Store, type TallyKey } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn } from './check.ts'
import { mixedFilters, mixedLetters } from './mixed.ts'
import { ahead, claim, ids, newFailure, person, stored, walk, worker } from './stage.ts'

const check = checkOn('tally')

export const tallyChecks = [
  ...tallyKeys.map((key) =>
    check(`counts by ${key} what matches() lets through`, async ({ store }) => {
      const letters = mixedLetters()
      await store.add(letters)
      const kept = await store.get(ids(letters))
      for (const filter of mixedFilters(letters, store.powers)) {
        const found = await store.tally(key, filter)
        assert.deepEqual(sorted(found), sorted(counted(kept, key, filter)), JSON.stringify(filter))
      }
    }),
  ),

  check('leaves archived letters out unless they are asked for', async ({ store }) => {
    await store.add([aLetter(), aLetter({ state: 'archived' })])
    assert.deepEqual(await store.tally('state'), new Map([['pending', 1]]))
    const archived = new Map([['archived', 1]])
    assert.deepEqual(await store.tally('state', { state: 'archived' }), archived)
  }),

  check('counts a letter once per tag', async ({ store }) => {
    await store.add([aLetter({ tags: ['a', 'b', 'a'] }), aLetter({ tags: ['a'] }), aLetter()])
    const tags = new Map([
      ['a', 2],
      ['b', 1],
    ])
    assert.deepEqual(await store.tally('tag'), tags)
  }),

  check('stays exact through everything that happens to letters', async (bench) => {
    const { store } = bench
    const letters = Array.from({ length: 12 }, (_, n) =>
      aLetter({ queue: n % 2 ? 'mail' : 'orders', tags: [`t${n % 3}`], dedupeKey: `k${n}` }),
    )
    await store.add(letters)
    await exact(store)
    const [a, b, c, d, e] = await claim(bench, { limit: 5 })
    await exact(store)
    const judged = newFailure(bench)
    const by = worker(bench)
    await store.apply([
      resolve(a!, by),
      reschedule(b!, by, { judged, retryAt: ahead(bench, 60_000), backoffMs: 60_000 }),
      exhaust(c!, by, { judged }),
      park(d!, by, { reason: 'permanent', judged }),
      release(e!, by),
    ])
    await exact(store)
    const me = person(bench)
    await store.apply([
      archive(await stored(store, a!.id), me),
      retry(await stored(store, c!.id), me),
      edit(await stored(store, d!.id), me, { priority: 'critical', tags: ['edited', 't0'] }),
      resolve(await stored(store, d!.id), me),
    ])
    await exact(store)
    await store.apply([restore(await stored(store, a!.id), me)])
    await store.add([aLetter({ dedupeKey: 'k11', queue: 'mail', ...judged })])
    await exact(store)
    await store.remove({ queue: 'mail' })
    await exact(store)
    await store.remove({ state: ['pending', 'resolved', 'exhausted', 'parked', 'archived'] })
    assert.deepEqual(await store.tally('queue'), new Map())
    assert.deepEqual(await store.tally('group'), new Map())
    assert.deepEqual(await store.tally('tag'), new Map())
  }),
]

/** Counts every key again from the letters themselves and compares. */
async function exact(store: Store): Promise<void> {
  const all: LetterFilter = {
    state: ['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived'],
  }
  const letters = await store.get(ids(await walk(store, all)))
  for (const filter of [{}, all, { queue: 'mail' }, { state: 'pending' as const }])
    for (const key of tallyKeys) {
      const what = `${key} ${JSON.stringify(filter)}`
      assert.deepEqual(
        sorted(await store.tally(key, filter)),
        sorted(counted(letters, key, filter)),
        what,
      )
    }
}

function counted(letters: DeadLetter[], key: TallyKey, filter: LetterFilter): Map<string, number> {
  const counts = new Map<string, number>()
  for (const letter of letters.filter((one) => matches(one, filter)))
    for (const value of new Set(valuesOf(letter, key)))
      counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

function valuesOf(letter: DeadLetter, key: TallyKey): string[] {
  if (key === 'tag') return letter.tags
  if (key === 'group') return [letter.fingerprint]
  if (key === 'policy' || key === 'source') return [letter[key].kind]
  return [letter[key]]
}

function sorted(counts: Map<string, number>): [string, number][] {
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
}
