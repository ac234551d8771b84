import { join } from 'node:path'
import { createProxy, type Proxy } from '../faults/proxy.ts'
import type { PrivateServer } from '../servers/control.ts'
import { postgresPlace, redisPlace, type Place } from '../servers/places.ts'
import { privatePostgres, privateRedis } from '../servers/private.ts'

/** Which faults a run can make: they depend on whose store it is. */
export type FaultKind = 'processes' | 'cuts' | 'restarts'

/** Where the letters of a run are, and the ways of its processes to them. */
export interface Scene {
  kind: 'sqlite' | 'postgres' | 'redis'
  faults: FaultKind[]
  /** Straight to the store, for those who judge. */
  url: string
  /** The ways of the processes, one for each; none where the store is a file. */
  links: Proxy[]
  /** The URL by which the process of this number goes. */
  urlFor: (process: number) => string
  /** A server that the run may stop: only one that it started itself. */
  server?: PrivateServer
  /** Ends what was started. `keep` leaves letters where they are, unless their server ends too. */
  end: (keep: boolean) => Promise<void>
}

const own = { postgres: privatePostgres, redis: privateRedis }

/**
 * The scene for a `--store`: `sqlite:FILE`, the URL of a server, or the bare word `postgres` or `redis` for a server of
 * the run's own. A server that somebody else started is never stopped, and a place of the run's own is used on it.
 */
export async function setScene(
  store: string | undefined,
  folder: string,
  processes: number,
): Promise<Scene> {
  if (store === 'postgres' || store === 'redis') {
    const server = await own[store]()
    const scene = await onServer(store, server.url, processes)
    const end = async (): Promise<void> => {
      await scene.end(true)
      await server.remove()
    }
    return { ...scene, faults: ['processes', 'cuts', 'restarts'], server, end }
  }
  if (store?.startsWith('postgres') || store?.startsWith('redis'))
    return onForeign(store, processes)
  const url = store ?? `sqlite:${join(folder, 'letters.db')}`
  return {
    kind: 'sqlite',
    faults: ['processes'],
    url,
    links: [],
    urlFor: () => url,
    end: () => Promise.resolve(),
  }
}

async function onForeign(store: string, processes: number): Promise<Scene> {
  const kind = store.startsWith('postgres') ? 'postgres' : 'redis'
  const place = kind === 'postgres' ? postgresPlace(store) : redisPlace(store)
  const scene = await onServer(kind, placed(kind, store, place), processes)
  const end = async (keep: boolean): Promise<void> => {
    await scene.end(keep)
    if (!keep) await place.clear()
  }
  return { ...scene, end }
}

function placed(kind: 'postgres' | 'redis', store: string, { name }: Place): string {
  const url = new URL(store)
  url.searchParams.set(kind === 'postgres' ? 'schema' : 'prefix', name)
  return url.href
}

async function onServer(
  kind: 'postgres' | 'redis',
  url: string,
  processes: number,
): Promise<Scene> {
  const links = await Promise.all(
    Array.from({ length: processes }, (_, process) => createProxy(url, process)),
  )
  return {
    kind,
    faults: ['processes', 'cuts'],
    url,
    links,
    urlFor: (process) => links[process]!.through(url),
    end: async () => {
      for (const link of links) link.close()
    },
  }
}
