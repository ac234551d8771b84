import type { LetterFilter } from '../../letter/query.ts'
import { sourceIdOf } from '../../letter/source-id.ts'

/**
 * How much of a source id an index holds. Indexes of servers have a limit on their entries, ids of
 * sources have none.
 */
const indexedLength = 200

/** A source id as indexes hold it: its beginning, if it is long. */
export function sourceKey(id: string): string {
  const cut = id.toWellFormed().slice(0, indexedLength)
  // Not through the middle of a surrogate pair.
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}

/**
 * The key of a letter that is stored already, from its origin. Undefined when it has none or cannot
 * be read.
 */
export function sourceKeyIn(origin: string): string | undefined {
  try {
    const id = sourceIdOf(JSON.parse(origin) as Parameters<typeof sourceIdOf>[0])
    return id === undefined ? undefined : sourceKey(id)
  } catch {
    return undefined
  }
}

/**
 * Whether columns and indexes only narrow the search, so that each letter they let through must be
 * read and compared.
 */
export function needsReading({ text, metadata, sourceId }: LetterFilter): boolean {
  return text !== undefined || metadata !== undefined || isLong(sourceId)
}

const isLong = (id: string | undefined): boolean =>
  id !== undefined && sourceKey(id) !== id.toWellFormed()

/**
 * What `rest` contains if the metadata of a letter matches: necessary for each key, not sufficient.
 */
export function metadataTexts({ metadata = {} }: LetterFilter): string[] {
  return Object.entries(metadata)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
}
