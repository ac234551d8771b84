import type { StoreHealth } from '../../store.ts'
import type { Books } from './books.ts'
import { lastBytes, lowOnSpace } from './space.ts'
import { schemaVersion } from './schema.ts'

/** Looks at the open file: what was asked of SQLite is still so, and the file is where it was. */
export function health({ db, options }: Books): StoreHealth {
  const checks: Record<string, string> = {
    path: options.path,
    sqlite: String(db.get('SELECT sqlite_version()')![0]),
    schema: String(schemaVersion),
    journal_mode: String(db.get('PRAGMA journal_mode')![0]),
    synchronous: db.get('PRAGMA synchronous')![0] === 2 ? 'full' : 'relaxed',
  }
  const problems: string[] = []
  if (!db.inPlace()) problems.push(replaced(options.path))
  else {
    const left = lastBytes(options.path)
    if (left !== undefined) problems.push(lowOnSpace(options.path, left))
  }
  return { ok: problems.length === 0, checks, problems }
}

/** What is said of a file that is no longer where it was opened. */
export function replaced(path: string): string {
  return `${path} was moved, removed or replaced while it was open: nothing more is written to it; put it back, or restart`
}
