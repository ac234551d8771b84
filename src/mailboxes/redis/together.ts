import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { type Crowd, gatherer, type Gatherer } from '../../backends/batcher.ts'

/** Batches of one verb that may be on their way at once: the server works on one while the answers to the other are read. */
const maxBatches = 3

/** Messages that go to the server in one script, and how many bytes weigh as much as one. */
const maxWeight = 64
const bytesPerMessage = 16 * 2 ** 10

/** What a message with so many bytes weighs. */
export function weightOf(bytes: number): number {
  return 1 + Math.floor(bytes / bytesPerMessage)
}

interface Aged<A> {
  ask: A
  bornMs: number
}

/**
 * Calls that come together go as one. When the server does not answer, those behind the ones that wait for it would wait for longer and
 * longer: past its patience a call fails, and was never sent.
 */
export function together<A, R>(
  patienceMs: number,
  crowd: Crowd,
  send: (asks: A[]) => Promise<R[]>,
): Gatherer<A, R> {
  const aged = gatherer<Aged<A>, R>({ maxBatches, maxWeight, crowd }, async (asks) => {
    const oldestMs = systemClock.mono() - patienceMs
    const timely = asks.filter(({ bornMs }) => bornMs >= oldestMs)
    const values = timely.length === 0 ? [] : await send(timely.map(({ ask }) => ask))
    let at = 0
    return asks.map(({ bornMs }) =>
      bornMs >= oldestMs ? { value: values[at++]! } : { error: unsent() },
    )
  })
  return {
    call: (ask, weight) => aged.call({ ask, bornMs: systemClock.mono() }, weight),
    idle: () => aged.idle(),
  }
}

function unsent(): RedriveError {
  return new RedriveError(
    'MAILBOX_UNAVAILABLE',
    'redis does not answer, and too many calls wait for it: this one was not sent',
  )
}
