import { states, type LetterSummary } from '../letter/letter.ts'
import { maxLimit, type LetterQuery } from '../letter/query.ts'
import type { Store } from '../store.ts'
import { countActions } from '../transfer/copy/progress.ts'
import { readPages } from './pages.ts'

/** The counts that a store maintains and that can be recounted from the letters. */
const countedKeys = ['state', 'queue', 'category', 'priority'] as const

/** A maintained count that differs from the number of letters. */
interface Difference {
  /** What is counted, such as "state pending". */
  what: string
  maintained: number
  counted: number
}

export interface CountReport {
  /** Letters read. */
  count: number
  corrupt: LetterSummary[]
  differences: Difference[]
  /** True: letters changed during every attempt, so the counts could not be compared. */
  changing: boolean
}

const maxTries = 3

/**
 * Reads every letter and compares the maintained counts. The result is valid only if no letter
 * changed meanwhile, which the lifetime totals show; otherwise it retries a few times.
 */
export async function verifyCounts(store: Store): Promise<CountReport> {
  for (let tries = 1; ; tries++) {
    const before = await countActions(store)
    const { differences, ...read } = await countLetters(store)
    const changing = (await countActions(store)) !== before
    if (!changing || tries === maxTries)
      return { ...read, differences: changing ? [] : differences, changing }
  }
}

async function countLetters(store: Store): Promise<Omit<CountReport, 'changing'>> {
  const counted = new Map<string, number>()
  const corrupt: LetterSummary[] = []
  let count = 0
  const query: LetterQuery = { state: [...states], order: 'oldest', limit: maxLimit }
  for await (const letters of readPages((from) => store.find({ ...query, ...from })))
    for (const letter of letters) {
      count++
      if (letter.corrupt !== undefined) corrupt.push(letter)
      for (const key of countedKeys) {
        const what = `${key} ${letter[key]}`
        counted.set(what, (counted.get(what) ?? 0) + 1)
      }
    }
  return { count, corrupt, differences: await compareCounts(store, counted) }
}

async function compareCounts(
  store: Store,
  counted: ReadonlyMap<string, number>,
): Promise<Difference[]> {
  const maintained = new Map<string, number>()
  for (const key of countedKeys)
    for (const [name, count] of await store.tally(key, { state: [...states] }))
      maintained.set(`${key} ${name}`, count)
  return [...new Set([...maintained.keys(), ...counted.keys()])]
    .map((what) => ({
      what,
      maintained: maintained.get(what) ?? 0,
      counted: counted.get(what) ?? 0,
    }))
    .filter((one) => one.maintained !== one.counted)
}
