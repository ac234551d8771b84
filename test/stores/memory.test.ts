import { memoryStore } from '../../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../src/testing/index.ts'
import { runStoreContract, type ClosableBench } from '../contract/run-store-contract.ts'
import { runStoreModel } from '../contract/run-store-model.ts'

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
runStoreModel('memoryStore', bench)
