import { Batcher, splitResults } from '../../backends/batcher.ts'

/**
 * The maximum number of letters, changes or leases in one script, so that no script blocks the
 * server for long.
 */
export const maxScriptItems = 256

/** Batches in flight: the server works on one while the replies to the other are read. */
const maxInFlight = 2

/** The limits of batches. */
export const batchLimits = { maxInFlight, maxBatchCost: maxScriptItems }

/** The number of chunks of one large call in flight. */
const maxAhead = 2

/**
 * Payload bytes that cost as much as one more letter, so that a few large letters fill a script.
 */
const bytesPerItem = 32 * 2 ** 10

/** The cost of a letter or change with this number of payload bytes. */
export function costOf(bytes: number): number {
  return 1 + Math.floor(bytes / bytesPerItem)
}

/** Joins concurrent calls: `send` gets the requests of all of them and returns one result each. */
export function createBatcher<A, R>(
  send: (requests: A[]) => Promise<R[]>,
): Batcher<readonly A[], R[]> {
  return new Batcher<readonly A[], R[]>(batchLimits, async (calls) =>
    splitResults(await send(calls.flat()), calls).map((results) => ({ value: results })),
  )
}

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
 * rejection. `send` is given the cost of its chunk.
 */
export async function sendInChunks<T, R>(
  all: readonly T[],
  send: (some: readonly T[], cost: number) => Promise<R[]>,
  weigh: (one: T) => number = () => 1,
): Promise<R[]> {
  const calls: Promise<R[]>[] = []
  try {
    for (const some of chunksOf(all, maxScriptItems, weigh)) {
      const call = send(
        some,
        some.reduce((sum, one) => sum + weigh(one), 0),
      )
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
