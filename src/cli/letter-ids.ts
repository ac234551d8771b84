import { RedriveError } from '../errors.ts'
import { states } from '../letter/letter.ts'
import { writeCursor } from '../letter/query.ts'
import type { Store } from '../store.ts'

const leastPrefix = 8

/** The id that a person means: a whole one, or the beginning of one, if only one letter has it. */
export async function resolveId(store: Store, given: string): Promise<string> {
  const [exact] = await store.get([given])
  if (exact) return exact.id
  const prefix = given.toLowerCase()
  if (!/^[0-9a-f-]{1,36}$/.test(prefix))
    throw new RedriveError(
      'INVALID_INPUT',
      `${JSON.stringify(given.slice(0, 80))} is no id: redrive list shows the ids of letters`,
    )
  if (prefix.length < leastPrefix)
    throw new RedriveError(
      'INVALID_INPUT',
      `"${prefix}" is too short: give at least ${leastPrefix} characters of the id`,
    )
  const found = (await neighbours(store, prefix, 'oldest', 6)).filter((id) => id.startsWith(prefix))
  if (found.length > 1)
    throw new RedriveError(
      'INVALID_INPUT',
      `"${prefix}" is the beginning of several ids, give more of it: ${found.slice(0, 5).join(', ')}${found.length > 5 ? ', …' : ''}`,
    )
  if (found.length === 0) throw new RedriveError('LETTER_NOT_FOUND', `there is no letter ${prefix}`)
  return found[0]!
}

/** The ids next to this text in the order of ids. A cursor need not lie on a letter. */
async function neighbours(
  store: Store,
  text: string,
  order: 'oldest' | 'newest',
  limit: number,
): Promise<string[]> {
  const cursor = writeCursor({ order, key: text, id: text })
  const { items } = await store.find({ state: [...states], order, limit, cursor })
  return items.map((letter) => letter.id)
}

/** In longer lists only the ids of the list itself are compared. */
const maxLookups = 100

/** How many characters tell each of these ids from every other one in the store. */
export async function shortLength(store: Store, ids: readonly string[]): Promise<number> {
  const sorted = [...ids].sort()
  let length = leastPrefix
  for (const [index, id] of sorted.entries())
    length = Math.max(length, shared(id, sorted[index + 1]) + 1)
  if (ids.length > maxLookups) return length
  const nearby = await Promise.all(
    ids.map(async (id) => {
      const [[after], [before]] = await Promise.all([
        neighbours(store, id, 'oldest', 1),
        neighbours(store, id, 'newest', 1),
      ])
      return Math.max(shared(id, after), shared(id, before)) + 1
    }),
  )
  return Math.max(length, ...nearby)
}

function shared(id: string, other = ''): number {
  let length = 0
  while (length < id.length && id[length] === other[length]) length++
  return length
}
