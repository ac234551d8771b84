import { openDatabase, type Database } from '../../backends/sqlite/database.ts'
import { firstVersion, migrations, schemaVersion } from './schema.ts'

export interface DatabaseOptions {
  path: string
  synchronous: 'full' | 'relaxed'
  busyTimeoutMs: number
}

/**
 * Two or three letters with their payload and stack fit on a page; on one of 4 KiB, a third of it
 * would be wasted.
 */
const pageBytes = 8192
const cacheKib = 64 * 1024

const schema = { meta: 'meta', version: schemaVersion, firstVersion, migrations }

export function openStoreDatabase(options: DatabaseOptions): Database {
  const { path, busyTimeoutMs } = options
  const synchronous = options.synchronous === 'full' ? 2 : 1
  return openDatabase({ path, busyTimeoutMs, synchronous, pageBytes, cacheKib, schema })
}
