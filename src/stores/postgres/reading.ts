import type { KeptLetter } from '../rows/form.ts'
import type { Books } from './books.ts'
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

/** Letters or ids that one statement asks for. */
const maxIds = 500

/** The letters that exist, by id. Each is read in one statement, and so as it stood at one moment. */
export async function lettersById(
  { connection, queues }: Books,
  ids: readonly string[],
  extent: Extent,
): Promise<Map<string, KeptLetter>> {
  const found = new Map<string, KeptLetter>()
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
