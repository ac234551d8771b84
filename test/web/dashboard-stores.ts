import { missing, openPostgresBench } from '../stores/postgres/postgres-bench.ts'
import { openSqlite, type OpenStore } from './a-dashboard.ts'

const openPostgres: OpenStore = async () => {
  const bench = await openPostgresBench()
  return { store: bench.store, remove: () => bench.close() }
}

/** The stores that the dashboard is tested on. */
export const dashboardStores: [name: string, open: OpenStore][] = [
  ['SQLite', openSqlite],
  ...(missing ? [] : [['Postgres', openPostgres] as [string, OpenStore]]),
]
