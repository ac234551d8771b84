import type { Outcome } from '../../backends/batcher.ts'
import { hasCode } from '../../errors.ts'

/**
 * Runs a batch of calls at once. If the batch fails because of one call, the calls run one by one,
 * so that the others succeed.
 */
export async function runBatch<A, R>(
  calls: A[],
  run: (calls: A[]) => Promise<R[]>,
): Promise<Outcome<R>[]> {
  try {
    return (await run(calls)).map((value) => ({ value }))
  } catch (error) {
    if (calls.length === 1 || hasCode(error, 'STORE_UNAVAILABLE')) throw error
    const outcomes: Outcome<R>[] = []
    for (const call of calls)
      outcomes.push(
        await run([call]).then(
          ([value]) => ({ value: value! }),
          (cause: unknown) => ({ error: cause }),
        ),
      )
    return outcomes
  }
}

/**
 * Sends a large batch in parts: one after the other, or `inFlight` of them at a time. An item that
 * costs more than `most` is sent alone.
 */
export async function sendInParts<T, R>(
  all: readonly T[],
  most: number,
  send: (some: readonly T[]) => Promise<R[]>,
  costOf: (one: T) => number = () => 1,
  inFlight = 1,
): Promise<R[]> {
  const parts: (readonly T[])[] = []
  for (let start = 0, end = 0; start < all.length; start = end) {
    let cost = costOf(all[end++]!)
    while (end < all.length && (cost += costOf(all[end]!)) <= most) end += 1
    parts.push(all.slice(start, end))
  }
  const answers: R[][] = []
  let next = 0
  const sendNext = async (): Promise<void> => {
    while (next < parts.length) {
      const n = next++
      answers[n] = await send(parts[n]!)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, sendNext))
  return answers.flat()
}
