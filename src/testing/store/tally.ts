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
import { filtersOfPart, mixedFilters, mixedLetters } from './mixed.ts'
import {
  ahead,
  claim,
  eachOf,
  ids,
  newFailure,
  person,
  getLetter,
  findAll,
  worker,
} from './steps.ts'

const check = checkOn('tally')

export const tallyChecks = [
  ...tallyKeys.map((key, at) =>
    check(`counts by ${key} the letters that pass matches()`, async (bench) => {
      const { store } = bench
      const letters = mixedLetters()
      await store.add(letters)
      const stored = await store.get(ids(letters))
      const filters = mixedFilters(letters, store.powers)
      await eachOf(filtersOfPart(bench, filters, at, tallyKeys.length), async (filter) => {
        const counts = await store.tally(key, filter)
        assert.deepEqual(
          sortCounts(counts),
          sortCounts(countLetters(stored, key, filter)),
          JSON.stringify(filter),
        )
      })
    }),
  ),

  check('leaves out archived letters by default', async ({ store }) => {
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

  check('stays exact through all changes of letters', async (bench) => {
    const { store } = bench
    const letters = Array.from({ length: 12 }, (_, n) =>
      aLetter({ queue: n % 2 ? 'mail' : 'orders', tags: [`t${n % 3}`], dedupeKey: `k${n}` }),
    )
    await store.add(letters)
    await expectExact(store)
    const [a, b, c, d, e] = await claim(bench, { limit: 5 })
    await expectExact(store)
    const judged = newFailure(bench)
    const by = worker(bench)
    await store.apply([
      resolve(a!, by),
      reschedule(b!, by, { judged, retryAt: ahead(bench, 60_000), backoffMs: 60_000 }),
      exhaust(c!, by, { judged }),
      park(d!, by, { reason: 'permanent', judged }),
      release(e!, by),
    ])
    await expectExact(store)
    const me = person(bench)
    await store.apply([
      archive(await getLetter(store, a!.id), me),
      retry(await getLetter(store, c!.id), me),
      edit(await getLetter(store, d!.id), me, { priority: 'critical', tags: ['edited', 't0'] }),
      resolve(await getLetter(store, d!.id), me),
    ])
    await expectExact(store)
    await store.apply([restore(await getLetter(store, a!.id), me)])
    await store.add([aLetter({ dedupeKey: 'k11', queue: 'mail', ...judged })])
    await expectExact(store)
    await store.remove({ queue: 'mail' })
    await expectExact(store)
    await store.remove({ state: ['pending', 'resolved', 'exhausted', 'parked', 'archived'] })
    assert.deepEqual(await store.tally('queue'), new Map())
    assert.deepEqual(await store.tally('group'), new Map())
    assert.deepEqual(await store.tally('groupState'), new Map())
    assert.deepEqual(await store.tally('tag'), new Map())
  }),
]

/** Counts every key from the letters and compares the counts. */
export async function expectExact(store: Store): Promise<void> {
  const all: LetterFilter = {
    state: ['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived'],
  }
  const letters = await store.get(ids(await findAll(store, all)))
  const filters: LetterFilter[] = [{}, all, { queue: 'mail' }, { state: 'pending' }]
  const questions = filters.flatMap((filter) => tallyKeys.map((key) => ({ key, filter })))
  await eachOf(questions, async ({ key, filter }) =>
    assert.deepEqual(
      sortCounts(await store.tally(key, filter)),
      sortCounts(countLetters(letters, key, filter)),
      `${key} ${JSON.stringify(filter)}`,
    ),
  )
}

function countLetters(
  letters: DeadLetter[],
  key: TallyKey,
  filter: LetterFilter,
): Map<string, number> {
  const counts = new Map<string, number>()
  for (const letter of letters.filter((one) => matches(one, filter)))
    for (const value of new Set(valuesOf(letter, key)))
      counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

function valuesOf(letter: DeadLetter, key: TallyKey): string[] {
  if (key === 'tag') return letter.tags
  if (key === 'group') return [letter.fingerprint]
  if (key === 'groupState') return [`${letter.state} ${letter.fingerprint}`]
  if (key === 'policy' || key === 'source') return [letter[key].kind]
  return [letter[key]]
}

function sortCounts(counts: Map<string, number>): [string, number][] {
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
}
