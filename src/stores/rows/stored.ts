import { crc32 } from 'node:zlib'
import type { DeadLetter, Payload } from '../../letter/letter.ts'
import type { LoadedLetter, PackedLetter } from './form.ts'
import { factsOf, pack } from './pack.ts'
import { restOf } from './rest.ts'
import { rowOf, seal, valuesOf } from './row.ts'
import { unpack, unpackOriginal } from './unpack.ts'

interface Stored {
  letter: DeadLetter
  original?: Payload
  waitsFor?: string[]
}

/**
 * Encodes a letter of another store: the body is the captured one, the row has the edit if there
 * was one, and `dependsOn` is what the letter still waits for.
 */
export function packStored({ letter, original, waitsFor = [] }: Stored): PackedLetter {
  const packed = pack(original ? { ...letter, payload: original } : letter)
  if (original) {
    const row = rowOf(packed[0])
    // The payload comes first: see `isEdited`.
    row.rest = JSON.stringify({ payload: factsOf(letter.payload), ...restOf(row) })
    row.crc = seal(row)
    packed[0] = valuesOf(row)
  }
  if (packed[6]?.dependsOn) packed[6] = { ...packed[6], dependsOn: [...new Set(waitsFor)] }
  return packed
}

/** Decodes what `packStored` encodes. `captured` is the letter before an edit. Null: no edit. */
export function unpackStored(
  loaded: LoadedLetter,
  captured: LoadedLetter | null,
  waitsFor: string[],
): Stored {
  const letter = unpack(loaded)
  const waits = waitsFor.length > 0 ? { waitsFor } : {}
  if (!captured) return { letter, ...waits }
  const original = unpackOriginal(captured)
  if (original && crc32(original.bytes) === captured[5]) return { letter, original, ...waits }
  const { corrupt, ...rest } = letter
  const why = 'the captured payload cannot be read'
  return { letter: { ...rest, corrupt: corrupt ? `${corrupt}; ${why}` : why }, ...waits }
}
