import { states, type State } from '../letter/letter.ts'
import type { LetterFilter } from '../letter/query.ts'
import type { Store } from '../store.ts'
import type { LetterReader, QueueCounts } from './queue-access.ts'

/** Filter keys with maintained counts: their tally costs the same for any number of letters. */
const countedKeys = new Set(['queue', 'state', 'category', 'priority'])

/** Reads the letters of a store. */
export function readStoreLetters(store: Store): LetterReader {
  const get: LetterReader['get'] = async (id) => (await store.get([id]))[0]
  return {
    isLocal: true,
    get,
    getExact: get,
    find: (query) => store.find(query),
    count: (filter) => countLetters(store, filter),
    countQueues: () => readQueueCounts(store),
  }
}

async function countLetters(store: Store, filter: LetterFilter): Promise<number | undefined> {
  if (!Object.keys(filter).every((key) => countedKeys.has(key))) return undefined
  const counts = await store.tally('state', filter)
  return [...counts.values()].reduce((sum, count) => sum + count, 0)
}

/** Letters by queue and state, from maintained counts, by name. */
export async function readQueueCounts(store: Store): Promise<QueueCounts[]> {
  const tallies = await Promise.all(states.map((state) => store.tally('queue', { state })))
  const names = [...new Set(tallies.flatMap((tally) => [...tally.keys()]))].sort()
  return names.map((queue) => {
    const counts = states.map((state, index) => [state, tallies[index]!.get(queue) ?? 0])
    return { queue, ...(Object.fromEntries(counts) as Record<State, number>) }
  })
}
