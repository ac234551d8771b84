import { sleep, type Clock } from '../../clock/clock.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { runOperator } from './operator.ts'
import { mailQueue, runMailbox } from './mailbox.ts'
import { createOrder, createServices, type Order, type Service } from './services.ts'

/** Simulates incoming calls, and a person who takes care of letters. */
export interface Traffic {
  /** Names of all queues of the demo. */
  readonly queues: string[]
  paused: boolean
  /** Makes calls until the signal aborts, then waits for calls in flight. */
  run(signal: AbortSignal): Promise<void>
}

/** Registers the handlers. Calls start with `run`. */
export function createTraffic(dlq: DeadLetterQueue, clock: Clock): Traffic {
  return new ShopTraffic(dlq, clock)
}

interface Capturer {
  service: Service
  call: (order: Order) => Promise<unknown>
}

class ShopTraffic implements Traffic {
  paused = false
  readonly #dlq: DeadLetterQueue
  readonly #clock: Clock
  readonly #capturers: Capturer[]
  readonly #inFlight = new Set<Promise<unknown>>()

  constructor(dlq: DeadLetterQueue, clock: Clock) {
    this.#dlq = dlq
    this.#clock = clock
    this.#capturers = createServices(clock).map((service) => ({
      service,
      call: dlq.guard(service.queue, service.call, {
        ...service.settings,
        rethrow: false,
        context: ({ tenant }) => ({ tenant }),
      }),
    }))
    dlq.on('captured', async ({ letter }) => {
      if (letter.queue === 'refund')
        await dlq.park(letter.id, 'over the limit: a person decides', 'refund-rules')
    })
  }

  get queues(): string[] {
    return [...this.#capturers.map(({ service }) => service.queue), mailQueue]
  }

  async run(signal: AbortSignal): Promise<void> {
    const operator = runOperator(this.#dlq, this.#clock, signal)
    const mailbox = runMailbox(this.#dlq, this.#clock, signal)
    // First one call of each service, so that every kind of failure is visible.
    for (const capturer of this.#capturers) await this.#callService(capturer, 150, signal)
    while (!signal.aborted)
      await this.#callService(this.#pickCapturer(), 600 + 800 * this.#clock.random(), signal)
    await operator
    await mailbox
    await Promise.allSettled(this.#inFlight)
  }

  async #callService(
    { service, call }: Capturer,
    pauseMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted) return
    for (let calls = this.paused ? 0 : (service.burst ?? 1); calls > 0; calls--) {
      const calling = call(createOrder(service.queue, this.#clock)).finally(() =>
        this.#inFlight.delete(calling),
      )
      this.#inFlight.add(calling)
      // Errors of the store are reported as events; the calls continue.
      calling.catch(() => {})
    }
    await sleep(this.#clock, pauseMs, signal)
  }

  #pickCapturer(): Capturer {
    const all = this.#capturers.reduce((sum, { service }) => sum + service.share, 0)
    let left = this.#clock.random() * all
    return this.#capturers.find(({ service }) => (left -= service.share) < 0) ?? this.#capturers[0]!
  }
}
