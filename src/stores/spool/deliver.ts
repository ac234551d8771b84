import { RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { AddResult, Capacity, Store } from '../../store.ts'
import type { Entry } from './backlog.ts'

/** What became of some letters that were given to the store. */
export interface Delivery {
  /** How many, from the first on, are done with: in the store, or refused for good. */
  settled: number
  /** Among them: those that the store had already, or counted as an occurrence of another. */
  duplicates: number
  refused: { entry: Entry; why: string }[]
  /** Why it ended before the last one. */
  trouble?: unknown
}

/** Calls of the store, each within its time. */
export type Within = <T>(call: Promise<T>) => Promise<T>

/**
 * Gives letters to the store in their order, and says how far it came. A letter that the store calls invalid is
 * refused, and no other with it. Any error that does not speak of a letter is the store's: it ends the delivery.
 */
export async function deliver(
  store: Store,
  entries: readonly Entry[],
  capacity: Capacity | undefined,
  within: Within,
): Promise<Delivery> {
  const delivery: Delivery = { settled: 0, duplicates: 0, refused: [] }
  try {
    const letters = entries.map(({ letter }) => letter)
    const results = await within(store.add(letters, capacity))
    for (const [at, entry] of entries.entries())
      await take(store, entry, results[at]!, delivery, within)
    return delivery
  } catch (error) {
    if (!concernsLetter(error)) return { ...delivery, trouble: error }
    if (entries.length > 1) return oneByOne(store, entries, capacity, within)
    const why = (error as RedriveError).message
    return { settled: 1, duplicates: 0, refused: [{ entry: entries[0]!, why }] }
  }
}

async function oneByOne(
  store: Store,
  entries: readonly Entry[],
  capacity: Capacity | undefined,
  within: Within,
): Promise<Delivery> {
  const sum: Delivery = { settled: 0, duplicates: 0, refused: [] }
  for (const entry of entries) {
    const one = await deliver(store, [entry], capacity, within)
    sum.settled += one.settled
    sum.duplicates += one.duplicates
    sum.refused.push(...one.refused)
    if ('trouble' in one) return { ...sum, trouble: one.trouble }
  }
  return sum
}

async function take(
  store: Store,
  entry: Entry,
  result: AddResult,
  delivery: Delivery,
  within: Within,
): Promise<void> {
  if (result.kind === 'full')
    throw new RedriveError('QUEUE_FULL', 'the store is full (maxItems): archive or remove letters')
  if (result.kind === 'duplicate') {
    if (result.by === 'id' && !(await isSame(store, entry.letter, within))) {
      const why = `a letter with the id ${entry.letter.id} is kept already, with another payload`
      delivery.refused.push({ entry, why })
    } else delivery.duplicates += 1
  }
  delivery.settled += 1
}

/** Whether the letter that has the id is this one. One that is gone again was. */
async function isSame(store: Store, letter: DeadLetter, within: Within): Promise<boolean> {
  const kept = await within(store.original(letter.id))
  return kept === undefined || Buffer.compare(kept.bytes, letter.payload.bytes) === 0
}

/** The codes by which a store says that it is the letter, and not the store. */
function concernsLetter(error: unknown): boolean {
  return error instanceof RedriveError && ['INVALID_INPUT', 'TOO_LARGE'].includes(error.code)
}
