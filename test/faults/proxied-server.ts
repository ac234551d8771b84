// A server that each test reaches through a proxy of its own, and a direct connection to it.
import { afterAll, beforeAll } from 'vitest'
import type { Store } from '../../src/store.ts'
import { connectStore, openStore, type FaultBackend, type Environment } from './backends.ts'
import { createProxy, type Proxy } from './proxy.ts'

export interface ProxiedServer {
  /** Connected without a proxy: shows what the server really has. */
  readonly direct: Store
  /** Runs `work` with a store behind a proxy of its own. The store is not open yet. */
  behind(work: (store: Store, proxy: Proxy) => Promise<void>): Promise<void>
}

/** Starts the server before the tests of a `describe` and removes it after them. */
export function setUpProxiedServer({ begin }: FaultBackend): ProxiedServer {
  let environment: Environment
  let direct: Store
  beforeAll(async () => {
    environment = await begin()
    direct = await openStore(environment.url)
  }, 60_000)
  afterAll(async () => {
    await direct?.close()
    await environment?.clear()
  })
  return {
    get direct() {
      return direct
    },
    async behind(work) {
      const proxy = await createProxy(environment.url)
      const store = await connectStore(proxy.through(environment.url))
      try {
        await work(store, proxy)
      } finally {
        await proxy.set('reset')
        await store.close()
        proxy.close()
      }
    },
  }
}
