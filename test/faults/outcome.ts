import type { RedriveError } from '../../src/errors.ts'
import type { Store } from '../../src/store.ts'
import { until } from '../../scripts/servers/machine.ts'

export type Outcome<T> =
  | { value: T; error?: undefined }
  | { value?: undefined; error: RedriveError }

/** Settles a call: its value or its error. */
export const outcomeOf = <T>(call: Promise<T>): Promise<Outcome<T>> =>
  call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error: error as RedriveError }),
  )

/** Repeats a call while it fails with STORE_UNAVAILABLE. Returns how often it was refused. */
export async function retryUntilAnswered<T>(
  act: () => Promise<T>,
): Promise<{ value: T; refused: number }> {
  let refused = 0
  let got: Outcome<T> | undefined
  await until(
    'the call was never answered',
    async () => {
      got = await outcomeOf(act())
      if (!got.error) return true
      if (got.error.code !== 'STORE_UNAVAILABLE') throw got.error
      refused += 1
      return false
    },
    25,
  )
  return { value: (got as { value: T }).value, refused }
}

/** The total of an action, in one queue or in all. */
export async function countActions(store: Store, action: string, queue?: string): Promise<number> {
  return (await store.totals())
    .filter((one) => one.action === action && (queue === undefined || one.queue === queue))
    .reduce((sum, { count }) => sum + count, 0)
}

/** The number of letters by the counters of the store. */
export async function countLetters(store: Store): Promise<number> {
  return [...(await store.tally('state')).values()].reduce((sum, n) => sum + n, 0)
}
