// A server that is reached through proxies, each of which breaks the way of one test, and a witness who has a way of its own.
import { afterAll, beforeAll } from 'vitest'
import type { Store } from '../../src/store.ts'
import { connected, opened, type FaultBackend, type Ground } from './backends.ts'
import { createProxy, type Proxy } from './proxy.ts'

export interface Witnessed {
  /** Past all proxies: what the server really has. */
  readonly witness: Store
  /** A store behind a proxy of its own, not yet opened. */
  behind(work: (store: Store, proxy: Proxy) => Promise<void>): Promise<void>
}

/** For the tests of one `describe`: begun before them, and cleared away after them. */
export function witnessed({ begin }: FaultBackend): Witnessed {
  let ground: Ground
  let witness: Store
  beforeAll(async () => {
    ground = await begin()
    witness = await opened(ground.url)
  }, 60_000)
  afterAll(async () => {
    await witness?.close()
    await ground?.clear()
  })
  return {
    get witness() {
      return witness
    },
    async behind(work) {
      const proxy = await createProxy(ground.url)
      const store = await connected(proxy.through(ground.url))
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
