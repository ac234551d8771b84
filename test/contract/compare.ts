import assert from 'node:assert/strict'
import { orders, type LetterFilter, type Order } from '../../src/letter/query.ts'
import { tallyKeys, type Store, type TallyKey } from '../../src/store.ts'
import type { StoreModel } from './model.ts'

/** Compares both sides completely: letters, lists, counts, totals. */
export async function compare(model: StoreModel, store: Store): Promise<void> {
  const everything: LetterFilter = {
    state: ['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived'],
  }
  const expected = model.find(everything, 'oldest')
  const ids = expected.map((letter) => letter.id)
  assert.deepEqual(await store.get(ids), expected)
  const stored = await store.stored(ids)
  assert.deepEqual(
    stored.map(({ letter }) => letter),
    expected,
  )
  for (const { letter, waitsFor = [] } of stored) {
    const { unmet } = model.items.find((item) => item.letter.id === letter.id)!
    assert.deepEqual(waitsFor.toSorted(), [...new Set(unmet)].toSorted(), 'waits for')
  }
  const findAll = async (order: Order): Promise<string[]> => {
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await store.find({
        ...everything,
        order,
        limit: 7,
        ...(cursor ? { cursor } : {}),
      })
      found.push(...page.items.map((letter) => letter.id))
      cursor = page.cursor
    } while (cursor)
    return found
  }
  // Counts without a counter are computed from the letters, which are compared above.
  const keys = tallyKeys.filter((key) => key !== 'severity' && key !== 'source')
  // At once, since most stores are servers.
  const [lists, counts, totals] = await Promise.all([
    Promise.all(orders.map(findAll)),
    Promise.all(keys.map((key) => store.tally(key))),
    store.totals(),
  ])
  for (const [at, order] of orders.entries())
    assert.deepEqual(
      lists[at],
      model.find(everything, order).map((letter) => letter.id),
      order,
    )
  for (const [at, key] of keys.entries())
    assert.deepEqual(sorted(counts[at]!), sorted(tally(model, key)), key)
  assert.deepEqual(sorted(totals), sorted(model.totals))
}

function tally(
  model: StoreModel,
  key: Exclude<TallyKey, 'severity' | 'source'>,
): Map<string, number> {
  const counts = new Map<string, number>()
  for (const letter of model.find({}, 'oldest')) {
    const { tags, fingerprint, policy, ...rest } = letter
    const values =
      key === 'tag'
        ? tags
        : key === 'group'
          ? [fingerprint]
          : key === 'groupState'
            ? [`${rest.state} ${fingerprint}`]
            : key === 'policy'
              ? [policy.kind]
              : [rest[key]]
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return counts
}

function sorted(values: Iterable<unknown>): string[] {
  return Array.from(values, (value) =>
    JSON.stringify(value, Object.keys(value as object).toSorted()),
  ).toSorted()
}
