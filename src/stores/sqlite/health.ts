import type { StoreHealth } from '../../store.ts'
import type { StoreContext } from './context.ts'
import { schemaVersion } from './schema.ts'

/**
 * Checks the settings of SQLite and the disk.
 */
export function health({ db, disk, options }: StoreContext): StoreHealth {
  const checks: Record<string, string> = {
    path: options.path,
    sqlite: String(db.get('SELECT sqlite_version()')![0]),
    schema: String(schemaVersion),
    journal_mode: String(db.get('PRAGMA journal_mode')![0]),
    synchronous: db.get('PRAGMA synchronous')![0] === 2 ? 'full' : 'relaxed',
  }
  const problems = disk.problems()
  if (checks['journal_mode'] !== 'wal')
    problems.push(
      `journal_mode is ${checks['journal_mode']}, not wal: processes block each other; close all of them and open the file again`,
    )
  return { ok: problems.length === 0, checks, problems }
}
