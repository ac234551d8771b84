import { quote } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import { isLetterId } from '../letter/letter-id.ts'
import { states } from '../letter/letter.ts'
import { writeCursor } from '../letter/query.ts'
import { readPages } from './pages.ts'
import type { LetterReader } from './queue-access.ts'

/** Minimum length of an id prefix that is accepted. */
const minPrefix = 4
/** Minimum length of the prefixes in lists: ids of the same minute share fewer characters. */
const minShown = 8
/** Maximum number of ids in an error message. */
const maxListed = 5
/** Maximum number of letters with the same prefix that are searched for the right suffix. */
const maxScanned = 10_000

/**
 * Finds the id of a letter: by the full id, the source id, a prefix of the id, or prefix and suffix
 * with dots between. A narrow table may have cut the suffix. More than one match is an error.
 */
export async function resolveId(letters: LetterReader, given: string): Promise<string> {
  const exact = await letters.get(given)
  if (exact) return exact.id
  const sourced = await findBySource(letters, given)
  if (sourced !== undefined) return sourced
  const parts = /^([0-9a-f-]{1,36})(?:(?:…|\.\.+)([0-9a-f-]{0,36}))?$/.exec(given.toLowerCase())
  if (!parts) throw notFound(given)
  const [, start = '', end = ''] = parts
  if (start.length < minPrefix)
    throw invalid(`${quote(given)} is too short: give at least ${minPrefix} characters of the id`)
  const found = await findByPrefix(letters, start, end)
  if (found.length === 0) throw notFound(given)
  if (found.length === 1) return found[0]!
  throw invalid(
    `${quote(given)} is a prefix of several ids, give more characters: ${formatIds(found)}`,
  )
}

async function findBySource(letters: LetterReader, sourceId: string): Promise<string | undefined> {
  const query = { sourceId, state: [...states], limit: maxListed + 1 }
  const { items } = await letters.find(query)
  if (items.length > 1)
    throw invalid(
      `${quote(sourceId)} is the source id of several letters, give the id of one: ${formatIds(items.map(({ id }) => id))}`,
    )
  return items[0]?.id
}

function formatIds(ids: readonly string[]): string {
  return `${ids.slice(0, maxListed).join(', ')}${ids.length > maxListed ? ', …' : ''}`
}

function notFound(given: string): RedriveError {
  return new RedriveError('LETTER_NOT_FOUND', `no letter has the id or source id ${quote(given)}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}

const lowestId = '00000000-0000-0000-0000-000000000000'

async function findByPrefix(letters: LetterReader, start: string, end: string): Promise<string[]> {
  const found: string[] = []
  const lowest = start + lowestId.slice(start.length)
  if (!isLetterId(lowest)) return found
  let scanned = 0
  for await (const ids of readPages((from) =>
    findNeighbours(letters, lowest, 'oldest', end ? 500 : 6, from),
  ))
    for (const id of ids) {
      if (!id.startsWith(start) || found.length > maxListed || ++scanned > maxScanned) return found
      if (id.endsWith(end)) found.push(id)
    }
  return found
}

/** The ids next to this one in the order of ids. No letter need have it. */
async function findNeighbours(
  letters: LetterReader,
  id: string,
  order: 'oldest' | 'newest',
  limit: number,
  from: { cursor?: string } = {},
): Promise<{ items: string[]; cursor?: string }> {
  const cursor = writeCursor({ order, key: id, id })
  const page = await letters.find({ state: [...states], order, limit, cursor, ...from })
  return { ...page, items: page.items.map((letter) => letter.id) }
}

/** In longer lists, and in those of a server, prefixes are unique only within the list. */
const maxLookups = 100
/** Length of the part of an id that encodes the millisecond. */
const timeLength = 13
const endLength = 4

/**
 * Short forms of these ids that are unique in the store. Ids of the same millisecond differ only
 * near their end, so they are shortened to prefix and suffix.
 */
export async function shortIds(
  letters: LetterReader,
  ids: readonly string[],
): Promise<(id: string) => string> {
  const length = await prefixLength(letters, ids)
  const shorten = (id: string): string => `${id.slice(0, timeLength)}…${id.slice(-endLength)}`
  const isShorter =
    length > timeLength + 1 + endLength && new Set(ids.map(shorten)).size === ids.length
  return isShorter ? shorten : (id) => id.slice(0, length)
}

async function prefixLength(letters: LetterReader, ids: readonly string[]): Promise<number> {
  const sorted = [...ids].sort()
  const lengthsInList = sorted.map((id, index) => sharedLength(id, sorted[index + 1]) + 1)
  if (!letters.isLocal || ids.length > maxLookups) return Math.max(minShown, ...lengthsInList)
  const lengthsInStore = ids.map(async (id) => {
    const after = await findNeighbours(letters, id, 'oldest', 1)
    const before = await findNeighbours(letters, id, 'newest', 1)
    return Math.max(sharedLength(id, after.items[0]), sharedLength(id, before.items[0])) + 1
  })
  return Math.max(minShown, ...(await Promise.all(lengthsInStore)))
}

function sharedLength(id: string, other = ''): number {
  let length = 0
  while (length < id.length && id[length] === other[length]) length++
  return length
}
