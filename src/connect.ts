import type { Clock } from './clock.ts'
import { RedriveError } from './errors.ts'
import type { Store } from './store.ts'

/** Drivers by the scheme of their URL. Each is loaded only when it is asked for. */
const drivers: Record<string, (rest: string, clock: Clock) => Promise<Store>> = {
  memory: async (_rest, clock) =>
    (await import('./stores/memory/memory.ts')).memoryStore({ clock }),
  sqlite: async (rest, clock) => {
    const path = rest.replace(/^\/\/(?=\/)/, '')
    if (path === '')
      throw new RedriveError('INVALID_INPUT', 'sqlite: needs a file, as in sqlite:redrive.db')
    return (await import('./stores/sqlite/sqlite.ts')).sqliteStore({ path, clock })
  },
}

/** A URL to its store, not yet opened: `sqlite:FILE` or `memory:`. */
export async function connect(url: string, clock: Clock): Promise<Store> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  const driver =
    scheme !== undefined && Object.hasOwn(drivers, scheme) ? drivers[scheme] : undefined
  if (!scheme || !driver) {
    const known = Object.keys(drivers).map((name) => `${name}:`)
    throw new RedriveError(
      'INVALID_INPUT',
      `no store for ${shown(url)}: a store URL begins with ${known.join(' or ')}, as in sqlite:redrive.db`,
    )
  }
  return driver(url.slice(scheme.length + 1), clock)
}

/** A URL as it may be shown: without its password. */
function shown(url: string): string {
  return JSON.stringify(url.slice(0, 120).replace(/:\/\/[^@/]*@/, '://…@'))
}
