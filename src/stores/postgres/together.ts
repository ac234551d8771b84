import type { Outcome } from '../../backends/batcher.ts'
import { hasCode } from '../../errors.ts'

/** Carries out gathered calls in one go. What is wrong with one of them must not take the others along: they are then tried one by one. */
export async function together<A, R>(
  asks: A[],
  run: (asks: A[]) => Promise<R[]>,
): Promise<Outcome<R>[]> {
  try {
    return (await run(asks)).map((value) => ({ value }))
  } catch (error) {
    if (asks.length === 1 || hasCode(error, 'STORE_UNAVAILABLE')) throw error
    const outcomes: Outcome<R>[] = []
    for (const ask of asks)
      outcomes.push(
        await run([ask]).then(
          ([value]) => ({ value: value! }),
          (cause: unknown) => ({ error: cause }),
        ),
      )
    return outcomes
  }
}

/** Sends a large batch in parts, one after the other. What weighs more than the most that a part may have goes alone. */
export async function inParts<T, R>(
  all: readonly T[],
  most: number,
  send: (some: readonly T[]) => Promise<R[]>,
  weightOf: (one: T) => number = () => 1,
): Promise<R[]> {
  const answers: R[] = []
  for (let start = 0, end = 0; start < all.length; start = end) {
    let weight = weightOf(all[end++]!)
    while (end < all.length && (weight += weightOf(all[end]!)) <= most) end += 1
    answers.push(...(await send(all.slice(start, end))))
  }
  return answers
}
