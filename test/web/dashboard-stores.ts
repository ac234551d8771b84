import { atDepth } from '../depth.ts'
import { missing, openPostgresBench } from '../stores/postgres/postgres-bench.ts'
import { openSqlite, type OpenStore } from './a-dashboard.ts'

type NamedStore = [name: string, open: OpenStore]

const openPostgres: OpenStore = async () => {
  const bench = await openPostgresBench()
  return { store: bench.store, remove: () => bench.close() }
}

/** A store in the process of the server, and one on a server of its own. */
export const allStores: NamedStore[] = [
  ['SQLite', openSqlite],
  ...(missing ? [] : [['Postgres', openPostgres] as NamedStore]),
]

/**
 * The stores that every page and action is tested on. The dashboard knows the API only, and each
 * store keeps one contract, so that another store passes a few flows in `npm test`.
 */
export const dashboardStores: NamedStore[] = atDepth(allStores.slice(0, 1), allStores)
