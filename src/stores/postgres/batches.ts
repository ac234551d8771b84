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
 * Sends a large batch in parts, one after the other. An item that costs more than `most` is sent
 * alone.
 */
export async function sendInParts<T, R>(
  all: readonly T[],
  most: number,
  send: (some: readonly T[]) => Promise<R[]>,
  costOf: (one: T) => number = () => 1,
): Promise<R[]> {
  const answers: R[] = []
  for (let start = 0, end = 0; start < all.length; start = end) {
    let cost = costOf(all[end++]!)
    while (end < all.length && (cost += costOf(all[end]!)) <= most) end += 1
    answers.push(...(await send(all.slice(start, end))))
  }
  return answers
}
