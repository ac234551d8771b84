import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter, fakeClock, type FakeClock } from '../../src/testing/index.ts'
import { runStoreContract, type ClosableBench } from '../contract/run-store-contract.ts'
import { runStoreModel } from '../contract/run-store-model.ts'
import { atDepth } from '../depth.ts'

async function bench(clock: FakeClock): Promise<ClosableBench> {
  const store = memoryStore({ clock })
  await store.open()
  return {
    store,
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    close: () => store.close(),
  }
}

runStoreContract('memoryStore', () => bench(fakeClock()))
runStoreModel('memoryStore', bench, { numRuns: atDepth(100, 300) })

describe('memoryStore', () => {
  it('rejects an invalid leaseMs and claims nothing', async () => {
    const store = memoryStore({ clock: fakeClock() })
    await store.add([aLetter()])
    for (const leaseMs of [Number.NaN, -1]) {
      const refused = { code: 'INVALID_INPUT' }
      await expect(store.claim({ worker: 'w', limit: 1, leaseMs })).rejects.toMatchObject(refused)
      await expect(store.renew([], leaseMs)).rejects.toMatchObject(refused)
    }
    const { letters } = await store.claim({ worker: 'w', limit: 1, leaseMs: 100 })
    expect(letters).toHaveLength(1)
  })

  it('treats an invalid retryAt as overdue', async () => {
    const store = memoryStore({ clock: fakeClock() })
    await store.add([aLetter({ retryAt: 'soon' }), aLetter()])
    const { letters } = await store.claim({ worker: 'w', limit: 5, leaseMs: 100 })
    expect(letters).toHaveLength(2)
  })

  it('gives the event loop a turn after 50 writes, however few each call makes', async () => {
    const store = memoryStore()
    let turned = false
    setImmediate(() => (turned = true))
    for (let n = 0; n < 50; n++) await store.add([aLetter()])
    expect(turned).toBe(true)
  })
})
