import { provideKeys, type KeyProvider } from '../../../src/check/encryption-keys.ts'
import type { Store } from '../../../src/store.ts'
import { encryptedStore } from '../../../src/stores/encrypted/encrypted.ts'
import type { ClosableBench } from '../../contract/run-store-contract.ts'

/** Three keys that differ. */
export const keys = {
  one: Buffer.alloc(32, 1).toString('base64'),
  two: Buffer.alloc(32, 2).toString('base64'),
  three: Buffer.alloc(32, 3).toString('base64'),
}

/** A provider of the named keys. The first is the current one. */
export function someKeys(...names: (keyof typeof keys)[]): KeyProvider {
  return provideKeys({
    current: names[0]!,
    keys: Object.fromEntries(names.map((name) => [name, keys[name]])),
  })
}

/** The same bench with encryption in front of its store. */
export function encryptBench(bench: ClosableBench): ClosableBench {
  const encrypt = (store: Store): Store => encryptedStore(store, someKeys('one'))
  return {
    ...bench,
    store: encrypt(bench.store),
    ...(bench.reopen ? { reopen: async () => encrypt(await bench.reopen!()) } : {}),
    ...(bench.another ? { another: async () => encrypt(await bench.another!()) } : {}),
  }
}
