import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresPlace, redisPlace, type Place } from '../test/servers/places.ts'
import { backend } from '../test/servers/servers.ts'

export const storeKinds = ['sqlite', 'memory', 'postgres', 'redis'] as const
export type StoreKind = (typeof storeKinds)[number]

/** Where the stores of a run are: a folder, or schemas or prefixes on a shared server. */
export interface Location {
  /** The folder or the server, for the raw loops. */
  at: string
  /** The URL of a store. It is new unless this name was used since the last `clear`. */
  url(name: string): string
  clear(): Promise<void>
  close(): Promise<void>
}

export async function openLocation(kind: StoreKind): Promise<Location> {
  if (kind === 'postgres') return serverLocation(kind, 'schema', postgresPlace)
  if (kind === 'redis') return serverLocation(kind, 'prefix', redisPlace)
  const folder = await mkdtemp(join(tmpdir(), 'redrive-bench-'))
  return {
    at: folder,
    url: (name) => (kind === 'memory' ? 'memory:' : `sqlite:${join(folder, `${name}.db`)}`),
    clear: async () => {
      await rm(folder, { recursive: true })
      await mkdir(folder)
    },
    close: () => rm(folder, { recursive: true }),
  }
}

function serverLocation(
  kind: 'postgres' | 'redis',
  parameter: string,
  placeOn: (url: string) => Place,
): Location {
  const { url: at, missing } = backend(kind)
  if (missing !== undefined) throw new Error(missing)
  const places = new Map<string, Place>()
  const clear = async (): Promise<void> => {
    for (const place of places.values()) await place.clear()
    places.clear()
  }
  return {
    at,
    url: (name) => {
      const place = places.get(name) ?? placeOn(at)
      places.set(name, place)
      const url = new URL(at)
      url.searchParams.set(parameter, place.name)
      return url.href
    },
    clear,
    close: clear,
  }
}
