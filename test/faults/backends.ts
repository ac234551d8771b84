// The stores on servers, each with an environment that a test may break.
import { connect } from '../../src/connect/store.ts'
import { systemClock } from '../../src/clock/clock.ts'
import type { Store } from '../../src/store.ts'
import type { PrivateServer } from '../servers/control.ts'
import { opensearchPlace } from '../servers/places.ts'
import { lacksPrivate, privatePostgres, privateRedis } from '../servers/private.ts'
import { backend } from '../servers/servers.ts'

export interface Environment {
  readonly url: string
  /** Set where the test has a private server. */
  readonly server?: PrivateServer
  readonly clear: () => Promise<void>
}

export interface FaultBackend {
  readonly name: 'postgres' | 'redis' | 'opensearch'
  /** Why the store cannot be tested here; undefined if it can. */
  readonly lacks: string | undefined
  readonly begin: () => Promise<Environment>
}

const useServer = async (starting: Promise<PrivateServer>): Promise<Environment> => {
  const server = await starting
  return { url: server.url, server, clear: () => server.remove() }
}

/** OpenSearch is one shared server: only the connections to it are broken. */
export const backends: Readonly<Record<FaultBackend['name'], FaultBackend>> = {
  postgres: {
    name: 'postgres',
    lacks: lacksPrivate.postgres(),
    begin: () => useServer(privatePostgres()),
  },
  redis: {
    name: 'redis',
    lacks: lacksPrivate.redis(),
    begin: () => useServer(privateRedis()),
  },
  opensearch: {
    name: 'opensearch',
    lacks: backend('opensearch').missing,
    begin: async () => {
      const { url } = backend('opensearch')
      const place = opensearchPlace(url)
      return { url: `${url.replace(/^http/, 'opensearch')}/${place.name}`, clear: place.clear }
    },
  },
}

export const connectStore = (url: string): Promise<Store> => connect(url, systemClock)

export async function openStore(url: string): Promise<Store> {
  const store = await connectStore(url)
  await store.open()
  return store
}
