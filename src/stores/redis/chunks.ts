/** Letters, changes or leases that go to the server in one script, so that it is never busy with one for long. */
export const maxScriptItems = 128

/** Chunks of one large call that may be on their way before the oldest is awaited. */
const maxAhead = 2

/** Cuts a list where the weight of a piece has reached its most. */
function* piecesOf<T>(
  all: readonly T[],
  maxBatchCost: number,
  weigh: (one: T) => number,
): Generator<readonly T[]> {
  let start = 0
  let weight = 0
  for (const [at, one] of all.entries()) {
    weight += weigh(one)
    if (weight < maxBatchCost) continue
    yield all.slice(start, at + 1)
    start = at + 1
    weight = 0
  }
  if (start < all.length) yield start === 0 ? all : all.slice(start)
}

/**
 * Sends what fits into one script, again and again and a little ahead, and puts the answers together in order. It fails
 * only once everything sent has come to an end, so that nothing is written behind the caller's back.
 */
export async function inChunks<T, R>(
  all: readonly T[],
  maxBatchCost: number,
  send: (some: readonly T[]) => Promise<R[]>,
  weigh: (one: T) => number = () => 1,
): Promise<R[]> {
  const calls: Promise<R[]>[] = []
  try {
    for (const some of piecesOf(all, maxBatchCost, weigh)) {
      const call = send(some)
      // Whoever fails first is the answer; until then no other failure may count as unhandled.
      call.catch(() => {})
      calls.push(call)
      await calls[calls.length - 1 - maxAhead]
    }
    return calls.length === 1 ? await calls[0]! : (await Promise.all(calls)).flat()
  } finally {
    await Promise.allSettled(calls)
  }
}
