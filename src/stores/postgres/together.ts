import type { Outcome } from '../../kept/gather.ts'
import { RedriveError } from '../../errors.ts'

/** Carries out gathered calls in one go. What is wrong with one of them must not take the others along: they are then tried one by one. */
export async function together<A, R>(
  asks: A[],
  run: (asks: A[]) => Promise<R[]>,
): Promise<Outcome<R>[]> {
  try {
    return (await run(asks)).map((value) => ({ value }))
  } catch (error) {
    const all = error instanceof RedriveError && error.code === 'STORE_UNAVAILABLE'
    if (asks.length === 1 || all) throw error
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

/** Sends a large batch in parts, one after the other. */
export async function inParts<T, R>(
  all: readonly T[],
  most: number,
  send: (some: readonly T[]) => Promise<R[]>,
): Promise<R[]> {
  if (all.length <= most) return all.length === 0 ? [] : send(all)
  const answers: R[] = []
  for (let start = 0; start < all.length; start += most)
    answers.push(...(await send(all.slice(start, start + most))))
  return answers
}
