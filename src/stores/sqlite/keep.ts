import { rowOf } from '../rows/row.ts'
import { isEdited } from '../rows/rest.ts'
import type { KeepResult } from '../../store.ts'
import { dedupeOf, insert, refuseWhenLow } from './add.ts'
import { keepEdit } from './apply.ts'
import type { StoreContext } from './context.ts'
import type { LoadedStored, PackedStored } from './protocol.ts'
import { entryById, findLetter } from './reading.ts'
import { waitsOf } from './waits.ts'
import { erase } from './writing.ts'

/** Stores letters from another store unchanged. */
export function keep(context: StoreContext, letters: readonly PackedStored[]): KeepResult[] {
  refuseWhenLow(context)
  return letters.map((letter) => keepOne(context, letter))
}

function keepOne(context: StoreContext, [packed, edit]: PackedStored): KeepResult {
  const row = rowOf(packed[0])
  const same = entryById(context, row.id)
  if (same && same.row.version >= row.version) return 'conflict'
  if (same) erase(context, same)
  const seq = insert(context, packed, row, context.queues.number(packed[1]), dedupeOf(packed))
  if (edit && seq !== undefined) keepEdit(context, seq, edit)
  return 'written'
}

/** Letters with everything the store knows about them. */
export function stored(context: StoreContext, ids: readonly string[]): LoadedStored[] {
  return ids.flatMap((id): LoadedStored[] => {
    const found = findLetter(context, 'id', id, 'whole')
    if (!found) return []
    const { seq, row } = found.entry
    const captured = isEdited(row) ? findLetter(context, 'id', id, 'captured')!.letter : null
    return [[found.letter, captured, row.dependent === 1 ? waitsOf(context, seq) : []]]
  })
}
