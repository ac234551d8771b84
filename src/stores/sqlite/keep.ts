import { rowOf } from '../rows/row.ts'
import { isEdited } from '../rows/rest.ts'
import type { KeepResult } from '../../store.ts'
import { dedupeOf, insert, refuseWhenLow } from './add.ts'
import { keepEdit } from './apply.ts'
import type { Books } from './books.ts'
import type { KeptStored, PackedStored } from './protocol.ts'
import { entryById, findLetter } from './reading.ts'
import { waitsOf } from './waits.ts'
import { erase } from './writing.ts'

/** Letters from another store, as they are. */
export function keep(books: Books, letters: readonly PackedStored[]): KeepResult[] {
  refuseWhenLow(books)
  return letters.map((letter) => keepOne(books, letter))
}

function keepOne(books: Books, [packed, edit]: PackedStored): KeepResult {
  const row = rowOf(packed[0])
  const same = entryById(books, row.id)
  if (same && same.row.version >= row.version) return 'conflict'
  if (same) erase(books, same)
  const seq = insert(books, packed, row, books.queues.number(packed[1]), dedupeOf(packed))
  if (edit && seq !== undefined) keepEdit(books, seq, edit)
  return 'written'
}

/** Letters with all that is known of them. */
export function stored(books: Books, ids: readonly string[]): KeptStored[] {
  return ids.flatMap((id): KeptStored[] => {
    const found = findLetter(books, 'id', id, 'whole')
    if (!found) return []
    const { seq, row } = found.entry
    const captured = isEdited(row) ? findLetter(books, 'id', id, 'captured')!.kept : null
    return [[found.kept, captured, row.dependent === 1 ? waitsOf(books, seq) : []]]
  })
}
