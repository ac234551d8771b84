import type { LoadedLetter } from '../rows/decode.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import { at } from '../rows/columns.ts'
import type { StoreContext } from './context.ts'
import { loadedColumns, loadLetter, queueIn, type Extent } from './rows.ts'

/** Ids in one statement. */
const maxIds = 500

/** The existing letters by id. Each letter is read in one statement, and so is consistent. */
export async function readLetters(
  { connection, queues }: StoreContext,
  ids: readonly string[],
  extent: Extent,
): Promise<Map<string, LoadedLetter>> {
  const found = new Map<string, LoadedLetter>()
  const sql = `SELECT ${loadedColumns('l', 'b', extent)} FROM @letters l
    LEFT JOIN @bodies b ON b.id = l.id AND b.id = ANY($1::uuid[]) WHERE l.id = ANY($1::uuid[])`
  const valid = ids.filter(isLetterId)
  for (let start = 0; start < valid.length; start += maxIds) {
    const rows = await connection.read(sql, [valid.slice(start, start + maxIds)])
    const nameOf = await queues.names(rows.map((cells) => queueIn(cells)))
    for (const cells of rows) {
      const loaded = loadLetter(cells, nameOf(queueIn(cells)))
      found.set(loaded.row[at.id] as string, loaded)
    }
  }
  return found
}
