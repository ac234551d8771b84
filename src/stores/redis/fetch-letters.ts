import { crc32 } from 'node:zlib'
import { isEdited } from '../rows/rest.ts'
import { rowOf } from '../rows/row.ts'
import { unpack, unpackOriginal } from '../rows/unpack.ts'
import { toText, type RedisConnection } from '../../backends/redis/connection.ts'
import type { StoredLetter } from '../../store.ts'
import { sendInChunks, maxScriptItems } from './chunks.ts'
import { keptOf, originalOf, type Fields } from './form.ts'
import { scripts } from './scripts.ts'

export interface Fetched {
  id: string
  fields: Fields
}

/** Which parts of a letter are read: those in lists, or all. */
export type Extent = 'summary' | 'whole'

/**
 * Letters in the given order, with the ids that they wait for, in as many scripts as their size
 * requires.
 */
export async function fetchLetters(
  connection: RedisConnection,
  ids: readonly string[],
  extent: Extent,
  maxBytes: number,
): Promise<Fetched[]> {
  const all: Fetched[] = []
  for (let left = ids; left.length > 0;) {
    const reply = await connection.run(scripts.fetch, [extent, String(maxBytes), ...left])
    const letters = reply as (Fields | null)[]
    for (const [at, fields] of letters.entries()) if (fields) all.push({ id: left[at]!, fields })
    left = left.slice(letters.length)
  }
  return all
}

/** The number of payload bytes after which one script ends. */
const maxFetchBytes = 16 * 2 ** 20

export function fetchAll(connection: RedisConnection, ids: readonly string[]): Promise<Fetched[]> {
  return sendInChunks(ids, maxScriptItems, (some) =>
    fetchLetters(connection, some, 'whole', maxFetchBytes),
  )
}

/** A letter with its store-internal data. */
export function storedOf(id: string, fields: Fields): StoredLetter {
  const kept = keptOf(id, fields)
  const letter = unpack(kept)
  const waitsFor = (fields[6] as Buffer[]).map(toText)
  const stored = { letter, ...(waitsFor.length > 0 ? { waitsFor } : {}) }
  if (!isEdited(rowOf(kept[0]))) return stored
  const captured = originalOf(id, fields)
  const original = unpackOriginal(captured)
  if (original && crc32(original.bytes) === captured[5]) return { ...stored, original }
  const fault = 'the payload as captured cannot be read'
  letter.corrupt = letter.corrupt === undefined ? fault : `${letter.corrupt}; ${fault}`
  return original ? { ...stored, original } : stored
}
