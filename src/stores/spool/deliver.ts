import { hasCode, RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Capacity, Store } from '../../store.ts'
import type { Entry, Refusal } from './backlog.ts'

/** The result of delivering some letters. */
export interface Delivery {
  /** How many of the first letters are in the store or refused. */
  settled: number
  /** How many of them the store had already, or counted as an occurrence. */
  duplicates: number
  refused: Refusal[]
  /** Why the delivery ended before the last letter. */
  error?: unknown
}

/** Limits the time of a call of the store. */
export type LimitTime = <T>(call: Promise<T>) => Promise<T>

/**
 * Adds letters to the store in order. A letter that the store calls invalid is refused, the others
 * are added. Any other error ends the delivery.
 */
export async function deliver(
  store: Store,
  entries: readonly Entry[],
  capacity: Capacity | undefined,
  limitTime: LimitTime,
): Promise<Delivery> {
  let delivery: Delivery = { settled: 0, duplicates: 0, refused: [] }
  try {
    const letters = entries.map(({ letter }) => letter)
    const results = await limitTime(store.add(letters, capacity))
    for (const [at, entry] of entries.entries()) {
      const result = results[at]!
      if (result.kind === 'full') throw fullError()
      if (result.kind === 'duplicate')
        if (result.by !== 'id' || (await isStored(store, entry.letter, limitTime)))
          delivery.duplicates += 1
        else {
          const why = `the store has another letter with the id ${entry.letter.id} and a different payload`
          delivery.refused.push({ entry, why })
        }
      delivery.settled += 1
    }
    return delivery
  } catch (error) {
    if (!hasCode(error, 'INVALID_INPUT', 'TOO_LARGE')) return { ...delivery, error }
    delivery = { settled: 0, duplicates: 0, refused: [] }
    if (entries.length === 1)
      return { ...delivery, settled: 1, refused: [{ entry: entries[0]!, why: error.message }] }
  }
  for (const entry of entries) {
    const { settled, duplicates, refused, ...rest } = await deliver(
      store,
      [entry],
      capacity,
      limitTime,
    )
    delivery.settled += settled
    delivery.duplicates += duplicates
    delivery.refused.push(...refused)
    if ('error' in rest) return { ...delivery, error: rest.error }
  }
  return delivery
}

function fullError(): RedriveError {
  return new RedriveError('QUEUE_FULL', 'the store is full (maxItems): archive or remove letters')
}

/** Whether the letter with this id is the same one. A letter that is gone again was. */
async function isStored(store: Store, letter: DeadLetter, limitTime: LimitTime): Promise<boolean> {
  const original = await limitTime(store.original(letter.id))
  return original === undefined || Buffer.compare(original.bytes, letter.payload.bytes) === 0
}
