// The stores on servers, each with a place of its own to break.
import { connect } from '../../src/connect/store.ts'
import { systemClock } from '../../src/clock/clock.ts'
import type { Store } from '../../src/store.ts'
import type { PrivateServer } from '../servers/control.ts'
import { opensearchPlace } from '../servers/places.ts'
import { lacksPrivate, privatePostgres, privateRedis } from '../servers/private.ts'
import { backend } from '../servers/servers.ts'

export interface Ground {
  readonly url: string
  /** The server itself, where the test has it for itself. */
  readonly server?: PrivateServer
  readonly clear: () => Promise<void>
}

export interface FaultBackend {
  readonly name: 'postgres' | 'redis' | 'opensearch'
  /** Why it cannot be tested here, or nothing. */
  readonly lacks: string | undefined
  readonly begin: () => Promise<Ground>
}

const ownServer = async (begun: Promise<PrivateServer>): Promise<Ground> => {
  const server = await begun
  return { url: server.url, server, clear: () => server.remove() }
}

/** What can only be had once is shared, and is broken on the way to it. */
export const backends: Readonly<Record<FaultBackend['name'], FaultBackend>> = {
  postgres: {
    name: 'postgres',
    lacks: lacksPrivate.postgres(),
    begin: () => ownServer(privatePostgres()),
  },
  redis: {
    name: 'redis',
    lacks: lacksPrivate.redis(),
    begin: () => ownServer(privateRedis()),
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

export const connected = (url: string): Promise<Store> => connect(url, systemClock)

export async function opened(url: string): Promise<Store> {
  const store = await connected(url)
  await store.open()
  return store
}
