import { states, type LetterSummary } from '../letter/letter.ts'
import { maxLimit, type LetterQuery } from '../letter/query.ts'
import type { Store } from '../store.ts'
import { pages } from './pages.ts'

/** The counts that a store maintains and that can be recounted from the letters. */
const countedKeys = ['state', 'queue', 'category', 'priority'] as const

/** A maintained count that differs from the letters. */
interface Difference {
  /** What is counted, such as "state pending". */
  what: string
  maintained: number
  found: number
}

export interface Census {
  /** Letters read. */
  count: number
  corrupt: LetterSummary[]
  differences: Difference[]
  /** True: letters changed during every attempt, so the counts could not be compared. */
  moving: boolean
}

const maxTries = 3

/**
 * Reads every letter and compares the maintained counts. The result is valid only if no letter
 * changed meanwhile, which the lifetime totals show; otherwise it retries a few times.
 */
export async function takeCensus(store: Store): Promise<Census> {
  for (let tries = 1; ; tries++) {
    const before = await happenings(store)
    const { differences, ...read } = await countOnce(store)
    const moving = (await happenings(store)) !== before
    if (!moving || tries === maxTries)
      return { ...read, differences: moving ? [] : differences, moving }
  }
}

/** Number of all actions in this store so far. */
async function happenings(store: Store): Promise<number> {
  return (await store.totals()).reduce((sum, { count }) => sum + count, 0)
}

async function countOnce(store: Store): Promise<Omit<Census, 'moving'>> {
  const found = new Map<string, number>()
  const corrupt: LetterSummary[] = []
  let count = 0
  const query: LetterQuery = { state: [...states], order: 'oldest', limit: maxLimit }
  for await (const letters of pages((from) => store.find({ ...query, ...from })))
    for (const letter of letters) {
      count++
      if (letter.corrupt !== undefined) corrupt.push(letter)
      for (const key of countedKeys) {
        const what = `${key} ${letter[key]}`
        found.set(what, (found.get(what) ?? 0) + 1)
      }
    }
  return { count, corrupt, differences: await compare(store, found) }
}

async function compare(store: Store, found: ReadonlyMap<string, number>): Promise<Difference[]> {
  const maintained = new Map<string, number>()
  for (const key of countedKeys)
    for (const [name, count] of await store.tally(key, { state: [...states] }))
      maintained.set(`${key} ${name}`, count)
  return [...new Set([...maintained.keys(), ...found.keys()])]
    .map((what) => ({
      what,
      maintained: maintained.get(what) ?? 0,
      found: found.get(what) ?? 0,
    }))
    .filter((one) => one.maintained !== one.found)
}
