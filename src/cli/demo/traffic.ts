import { sleep, type Clock } from '../../clock/clock.ts'
import type { DeadLetterQueue } from '../../queue.ts'
import { refundLimit, services, type Order, type Service } from './services.ts'

/** Calls that come in, and the person who looks after what is parked. */
export interface Traffic {
  /** Names of the queues that it makes letters for. */
  readonly queues: string[]
  paused: boolean
  /** Calls until the signal aborts, and lets what is under way end. */
  run(signal: AbortSignal): Promise<void>
}

/** Registers the handlers. Nothing is called before `run`. */
export function traffic(dlq: DeadLetterQueue, clock: Clock): Traffic {
  return new ShopTraffic(dlq, clock)
}

/** When more than this waits for a person, the demo plays that person. */
const maxParked = 8
const reviewPauseMs = 5000
const customers = [
  'ada@example.com',
  'grace@example.com',
  'linus@example.org',
  'barbara@example.com',
]

interface Capturer {
  service: Service
  call: (order: Order) => Promise<unknown>
}

class ShopTraffic implements Traffic {
  paused = false
  readonly #dlq: DeadLetterQueue
  readonly #clock: Clock
  readonly #doors: Capturer[]
  readonly #calls = new Set<Promise<unknown>>()

  constructor(dlq: DeadLetterQueue, clock: Clock) {
    this.#dlq = dlq
    this.#clock = clock
    this.#doors = services(clock).map((service) => ({
      service,
      call: dlq.guard(service.queue, service.call, { ...service.settings, rethrow: false }),
    }))
    dlq.on('captured', async ({ letter }) => {
      if (letter.queue === 'refund')
        await dlq.park(letter.id, 'over the limit: a person decides', 'refund-rules')
    })
  }

  get queues(): string[] {
    return this.#doors.map(({ service }) => service.queue)
  }

  async run(signal: AbortSignal): Promise<void> {
    const reviewing = this.#review(signal)
    // One of each first, so that there is something of everything to see.
    for (const door of this.#doors) await this.#next(door, 150, signal)
    while (!signal.aborted) await this.#next(this.#draw(), 600 + 800 * this.#clock.random(), signal)
    await reviewing
    await Promise.allSettled(this.#calls)
  }

  async #next({ service, call }: Capturer, pauseMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    for (let calls = this.paused ? 0 : (service.burst ?? 1); calls > 0; calls--) {
      const calling = call(this.#order(service.queue)).finally(() => this.#calls.delete(calling))
      this.#calls.add(calling)
      // Trouble with the store reaches the observers; the shop goes on.
      calling.catch(() => {})
    }
    await sleep(this.#clock, pauseMs, signal)
  }

  #draw(): Capturer {
    const all = this.#doors.reduce((sum, { service }) => sum + service.share, 0)
    let left = this.#clock.random() * all
    return this.#doors.find(({ service }) => (left -= service.share) < 0) ?? this.#doors[0]!
  }

  #order(queue: string): Order {
    const draw = (below: number): number => Math.floor(this.#clock.random() * below)
    const amount = (queue === 'refund' ? refundLimit + 1 : 5) + draw(40_000) / 100
    const lines =
      queue === 'render-invoice' ? null : [{ sku: `sku-${draw(900) + 100}`, count: draw(3) + 1 }]
    return {
      order: 10_000 + draw(90_000),
      customer: customers[draw(customers.length)]!,
      amount,
      currency: 'EUR',
      lines,
    }
  }

  /** Refunds are approved, what can never work is discarded: one at a time, when too many wait. */
  async #review(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(this.#clock, reviewPauseMs, signal)
      if (signal.aborted) return
      try {
        await this.#reviewOldest()
      } catch {
        // It moved meanwhile, or the store is in trouble: there is a next time.
      }
    }
  }

  async #reviewOldest(): Promise<void> {
    const { items } = await this.#dlq.find({
      state: 'parked',
      order: 'settled',
      limit: maxParked + 1,
    })
    const oldest = items[0]
    if (!oldest || items.length <= maxParked) return
    const approved = oldest.queue === 'refund'
    const note = approved ? 'approved' : 'cannot work'
    await this.#dlq.review(oldest.id, {
      decision: approved ? 'requeue' : 'discard',
      note,
      by: 'demo-operator',
    })
  }
}
