import type { LoadedLetter } from '../rows/form.ts'
import type { StoreContext } from './context.ts'
import {
  bodyColumns,
  bodyTables,
  entryColumns,
  entryOf,
  entryWidth,
  keptOf,
  type Extent,
} from './rows.ts'
import { toText } from './text.ts'

/** Ids in one statement. */
const maxIds = 500

/** The existing letters by id. Each letter is read in one statement, and so is consistent. */
export async function readLetters(
  { connection, queues }: StoreContext,
  ids: readonly string[],
  extent: Extent,
): Promise<Map<string, LoadedLetter>> {
  const found = new Map<string, LoadedLetter>()
  const sql = `SELECT ${entryColumns('l')}, ${bodyColumns(extent)} FROM @letters l ${bodyTables(extent, '$1::text[]')}
    WHERE l.id = ANY($1::text[])`
  for (let start = 0; start < ids.length; start += maxIds) {
    const rows = await connection.read(sql, [ids.slice(start, start + maxIds).map(toText)])
    const entries = rows.map(entryOf)
    const nameOf = await queues.names(entries.map(({ queue }) => queue))
    for (const [at, entry] of entries.entries())
      found.set(entry.row.id, keptOf(entry, nameOf(entry.queue), rows[at]!.slice(entryWidth)))
  }
  return found
}
