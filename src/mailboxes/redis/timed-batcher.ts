import { Batcher } from '../../backends/batcher.ts'
import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'

/** Batches of one verb in flight: the server runs one while the replies to the others are read. */
const maxInFlight = 3

/** Maximum cost of one script, and how many bytes cost as much as one message. */
const maxBatchCost = 64
const bytesPerMessage = 16 * 2 ** 10

/** The cost of a message of this many bytes. */
export function costOf(bytes: number): number {
  return 1 + Math.floor(bytes / bytesPerMessage)
}

interface TimedRequest<A> {
  request: A
  createdMs: number
}

/**
 * A batcher whose calls fail when they were queued for longer than `timeoutMs`. When the server
 * does not answer, calls would otherwise wait longer and longer behind each other. A call that
 * fails this way was never sent.
 */
export class TimedBatcher<A, R> {
  readonly #batcher: Batcher<TimedRequest<A>, R>

  constructor(timeoutMs: number, send: (requests: A[]) => Promise<R[]>) {
    this.#batcher = new Batcher<TimedRequest<A>, R>(
      { maxInFlight, maxBatchCost },
      async (requests) => {
        const oldestMs = systemClock.mono() - timeoutMs
        const timely = requests.filter(({ createdMs }) => createdMs >= oldestMs)
        const values = timely.length === 0 ? [] : await send(timely.map(({ request }) => request))
        let at = 0
        return requests.map(({ createdMs }) =>
          createdMs >= oldestMs ? { value: values[at++]! } : { error: notSent(timeoutMs) },
        )
      },
    )
  }

  call(request: A, cost?: number): Promise<R> {
    return this.#batcher.call({ request, createdMs: systemClock.mono() }, cost)
  }

  idle(): Promise<void> {
    return this.#batcher.idle()
  }
}

function notSent(timeoutMs: number): RedriveError {
  return new RedriveError(
    'MAILBOX_UNAVAILABLE',
    `Redis did not answer within ${timeoutMs} ms, so this call was not sent: check the server, then call again`,
  )
}
