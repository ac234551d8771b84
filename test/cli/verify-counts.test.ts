import { describe, expect, it } from 'vitest'
import { verifyCounts } from '../../src/cli/verify-counts.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

async function aStore(): Promise<Store> {
  const store = memoryStore()
  await store.open()
  await store.add([
    aLetter(),
    aLetter({ state: 'archived', queue: 'old' }),
    aLetter({ state: 'parked' }),
  ])
  return store
}

/** The store with another `tally`. */
function withTally(store: Store, tally: Store['tally']): Store {
  const { powers, records } = store
  const find: Store['find'] = store.find.bind(store)
  return { ...store, powers, records, find, totals: () => store.totals(), tally }
}

describe('verifyCounts', () => {
  it('finds counts that agree with the letters', async () => {
    const found = await verifyCounts(await aStore())
    expect(found).toEqual({ count: 3, corrupt: [], differences: [], changing: false })
  })

  it('reports a wrong count', async () => {
    const store = await aStore()
    const wrong = withTally(store, async (by, filter) => {
      const counts = await store.tally(by, filter)
      return by === 'state' ? counts.set('pending', 4) : counts
    })
    expect(await verifyCounts(wrong)).toMatchObject({
      differences: [{ what: 'state pending', maintained: 4, counted: 1 }],
      changing: false,
    })
  })

  it('does not report letters that change during the count as wrong counts', async () => {
    const store = await aStore()
    const busy = withTally(store, async (by, filter) => {
      await store.add([aLetter()])
      return store.tally(by, filter)
    })
    expect(await verifyCounts(busy)).toMatchObject({ differences: [], changing: true })
  })

  it('counts again when letters changed during the first count', async () => {
    const store = await aStore()
    let moved = false
    const settling = withTally(store, async (by, filter) => {
      if (!moved) await store.add([aLetter()])
      moved = true
      return store.tally(by, filter)
    })
    expect(await verifyCounts(settling)).toMatchObject({
      count: 4,
      differences: [],
      changing: false,
    })
  })
})
