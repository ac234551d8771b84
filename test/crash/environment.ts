import { join } from 'node:path'
import { createProxy, type Proxy } from '../faults/proxy.ts'
import type { PrivateServer } from '../servers/control.ts'
import { postgresPlace, redisPlace, type Place } from '../servers/places.ts'
import { privatePostgres, privateRedis } from '../servers/private.ts'

/** Kinds of faults that a run can inject. They depend on the store. */
export type FaultKind = 'processes' | 'cuts' | 'restarts'

/** The store of a run, and the connections of its processes to it. */
export interface Environment {
  kind: 'sqlite' | 'postgres' | 'redis'
  faults: FaultKind[]
  /** The URL of the store without a proxy, for the verifier. */
  url: string
  /** One proxy per process; none where the store is a file. */
  proxies: Proxy[]
  /** The URL of the store for the process with this number. */
  urlFor: (process: number) => string
  /** A server that the run may stop: only a private one. */
  server?: PrivateServer
  /**
   * Stops everything that was started. `keep` keeps the letters, unless their server is private.
   */
  end: (keep: boolean) => Promise<void>
}

const privateServers = { postgres: privatePostgres, redis: privateRedis }

/**
 * Creates the environment for a `--store`: `sqlite:FILE`, the URL of a server, or `postgres` or
 * `redis` for a private server. A server that is already running is never stopped; the run uses a
 * new schema or prefix on it.
 */
export async function createEnvironment(
  store: string | undefined,
  folder: string,
  processes: number,
): Promise<Environment> {
  if (store === 'postgres' || store === 'redis') {
    const server = await privateServers[store]()
    const environment = await connectToServer(store, server.url, processes)
    const end = async (): Promise<void> => {
      await environment.end(true)
      await server.remove()
    }
    return { ...environment, faults: ['processes', 'cuts', 'restarts'], server, end }
  }
  if (store?.startsWith('postgres') || store?.startsWith('redis'))
    return useRunningServer(store, processes)
  const url = store ?? `sqlite:${join(folder, 'letters.db')}`
  return {
    kind: 'sqlite',
    faults: ['processes'],
    url,
    proxies: [],
    urlFor: () => url,
    end: () => Promise.resolve(),
  }
}

async function useRunningServer(store: string, processes: number): Promise<Environment> {
  const kind = store.startsWith('postgres') ? 'postgres' : 'redis'
  const place = kind === 'postgres' ? postgresPlace(store) : redisPlace(store)
  const environment = await connectToServer(kind, addPlace(kind, store, place), processes)
  const end = async (keep: boolean): Promise<void> => {
    await environment.end(keep)
    if (!keep) await place.clear()
  }
  return { ...environment, end }
}

function addPlace(kind: 'postgres' | 'redis', store: string, { name }: Place): string {
  const url = new URL(store)
  url.searchParams.set(kind === 'postgres' ? 'schema' : 'prefix', name)
  return url.href
}

async function connectToServer(
  kind: 'postgres' | 'redis',
  url: string,
  processes: number,
): Promise<Environment> {
  const proxies = await Promise.all(
    Array.from({ length: processes }, (_, process) => createProxy(url, process)),
  )
  return {
    kind,
    faults: ['processes', 'cuts'],
    url,
    proxies,
    urlFor: (process) => proxies[process]!.through(url),
    end: async () => {
      for (const proxy of proxies) proxy.close()
    },
  }
}
