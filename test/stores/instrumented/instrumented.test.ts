import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import type { Store, StoreCall } from '../../../src/store.ts'
import { instrumentedStore } from '../../../src/stores/instrumented/instrumented.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import {
  checksOf,
  runStoreContract,
  type ClosableBench,
} from '../../contract/run-store-contract.ts'
import { openSqliteBench } from '../sqlite/sqlite-bench.ts'

/** The bench, with its stores instrumented. */
function instrumented(bench: ClosableBench): ClosableBench {
  const clock = fakeClock()
  const wrap = (store: Store): Store => instrumentedStore(store, { clock, onCall: () => {} })
  return {
    ...bench,
    store: wrap(bench.store),
    ...(bench.another ? { another: async () => wrap(await bench.another!()) } : {}),
    ...(bench.reopen ? { reopen: async () => wrap(await bench.reopen!()) } : {}),
  }
}

runStoreContract('instrumentedStore over memory', async () => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  await store.open()
  return instrumented({
    store,
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    close: () => store.close(),
  })
})

// Over memory, all methods are checked that both stores have.
runStoreContract(
  'instrumentedStore over SQLite',
  async () => instrumented(await openSqliteBench()),
  { inShort: checksOf() },
)

describe('instrumentedStore', () => {
  const setUp = (
    replaced: Partial<Store> = {},
  ): { calls: StoreCall[]; store: Store; clock: ReturnType<typeof fakeClock> } => {
    const clock = fakeClock()
    const calls: StoreCall[] = []
    const plain = Object.assign(memoryStore({ clock }), replaced)
    const store = instrumentedStore(plain, { clock, onCall: (call) => calls.push(call) })
    return { calls, store, clock }
  }

  it('reports the method and the number of items of each call', async () => {
    const { calls, store } = setUp()
    const letter = aLetter()
    await store.add([letter, aLetter()])
    await store.get([letter.id])
    await store.find({ limit: 10 })
    await store.claim({ worker: 'w', limit: 5, leaseMs: 1000 })
    await store.tally('queue')
    await store.records.put('kind', 'id', 1)
    expect(calls.map(({ method, items }) => [method, items])).toEqual([
      ['add', 2],
      ['get', 1],
      ['find', 2],
      ['claim', 2],
      ['tally', undefined],
      ['records.put', undefined],
    ])
  })

  it('reports durations on the clock', async () => {
    const { calls, store, clock } = setUp({
      totals: async () => {
        await clock.advance(25)
        return []
      },
    })
    await store.totals()
    expect(calls).toEqual([{ method: 'totals', durationMs: 25, items: 0 }])
  })

  it('reports the code of an error, and rejects with the same error', async () => {
    const away = new RedriveError('STORE_UNAVAILABLE', 'away')
    const bug = new TypeError('bug')
    const { calls, store } = setUp({
      totals: () => Promise.reject(away),
      health: () => Promise.reject(bug),
    })
    await expect(store.totals()).rejects.toBe(away)
    await expect(store.health()).rejects.toBe(bug)
    expect(calls.map(({ code }) => code)).toEqual(['STORE_UNAVAILABLE', 'UNEXPECTED'])
  })

  it('reports an error that a driver throws synchronously, and rejects with it', async () => {
    const bug = new TypeError('bug')
    const { calls, store } = setUp({
      totals: () => {
        throw bug
      },
    })
    await expect(store.totals()).rejects.toBe(bug)
    expect(calls).toMatchObject([{ method: 'totals', code: 'UNEXPECTED' }])
  })

  it('adds no method that the store does not have', () => {
    const { store } = setUp()
    expect(['within' in store, 'search' in store]).toEqual([false, false])
  })
})
