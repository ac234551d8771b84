/**
 * The maximum number of letters, changes or leases in one script, so that no script blocks the
 * server for long.
 */
export const maxScriptItems = 128

/** The number of chunks of one large call in flight. */
const maxAhead = 2

/** Splits a list into chunks of limited cost. */
function* chunksOf<T>(
  all: readonly T[],
  maxBatchCost: number,
  weigh: (one: T) => number,
): Generator<readonly T[]> {
  let start = 0
  let cost = 0
  for (const [at, one] of all.entries()) {
    cost += weigh(one)
    if (cost < maxBatchCost) continue
    yield all.slice(start, at + 1)
    start = at + 1
    cost = 0
  }
  if (start < all.length) yield start === 0 ? all : all.slice(start)
}

/**
 * Sends a large call in chunks, some of them in flight at once, and returns the replies in order.
 * It rejects only after every chunk that was sent has ended, so that nothing is written after the
 * rejection.
 */
export async function sendInChunks<T, R>(
  all: readonly T[],
  maxBatchCost: number,
  send: (some: readonly T[]) => Promise<R[]>,
  weigh: (one: T) => number = () => 1,
): Promise<R[]> {
  const calls: Promise<R[]>[] = []
  try {
    for (const some of chunksOf(all, maxBatchCost, weigh)) {
      const call = send(some)
      // The first failure is thrown below; until then no other failure may count as unhandled.
      call.catch(() => {})
      calls.push(call)
      await calls[calls.length - 1 - maxAhead]
    }
    return calls.length === 1 ? await calls[0]! : (await Promise.all(calls)).flat()
  } finally {
    await Promise.allSettled(calls)
  }
}
