import { sleep, type Clock } from '../../clock/clock.ts'
import type { GuardSettings } from '../../queue/queue.ts'
import type { GuardedRun } from '../../capture/operation.ts'

/** A part of a shop that calls something unreliable. */
export interface Service {
  queue: string
  /** How often the service is called, relative to the others. 0: only once, at the start. */
  share: number
  /** Concurrent calls. Default: 1. */
  burst?: number
  settings: GuardSettings<Order>
  call: (order: Order, run: GuardedRun<Order>) => Promise<unknown>
}

/** The input of a call. `lines` is null in orders of an old client. */
export interface Order {
  order: number
  /** The shop that it belongs to. */
  tenant: string
  customer: string
  amount: number
  currency: 'EUR'
  lines: { sku: string; count: number }[] | null
}

class HttpError extends Error {
  readonly status: number
  readonly headers: Record<string, string>

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.name = 'HttpError'
    this.status = status
    this.headers = headers
  }
}

const errorWithCode = (code: string, message: string): Error =>
  Object.assign(new Error(message), { code })

/** Payments are down for a while in every minute, so that the breaker of their queue opens. */
const cycleMs = 60_000
const outageMs = 15_000

/** Rate limit of the language model. */
const windowMs = 4000
const callsPerWindow = 4

/** The release that breaks the search index, and when the next one fixes it. */
const brokenRelease = '2026.11.2'
const fixedAfterMs = 60_000

/** The queue of the broken release. */
export const indexQueue = 'index-order'

/** A refund above this amount needs a review. */
const refundLimit = 500

/**
 * The services of the demo, each with another kind of failure: connection resets and outages, a
 * rate limit, a payload that its handler cannot process, permanent rejections, timeouts, a rule
 * that needs a review, a host that is gone, and a broken release that makes one big group.
 */
export function createServices(clock: Clock): Service[] {
  return [
    {
      queue: 'charge-card',
      share: 5,
      settings: { priority: 'high', breaker: { failures: 4, openMs: 8000 } },
      call: chargeCard(clock),
    },
    {
      queue: 'summarise-ticket',
      share: 1,
      burst: 5,
      settings: { maxRetries: 6 },
      call: summarise(clock),
    },
    { queue: 'render-invoice', share: 1, settings: { priority: 'low' }, call: renderInvoice },
    { queue: 'sync-customer', share: 1, settings: {}, call: syncCustomer },
    { queue: 'ship-parcel', share: 3, settings: { timeoutMs: 4000 }, call: shipParcel(clock) },
    { queue: 'refund', share: 1, settings: {}, call: refund },
    {
      queue: 'call-webhook',
      share: 1,
      // Without a breaker, so that retries are used up.
      settings: { maxRetries: 2, breaker: false },
      call: callWebhook,
    },
    { queue: indexQueue, share: 0, burst: 40, settings: {}, call: indexOrder(clock) },
  ]
}

function chargeCard(clock: Clock): Service['call'] {
  const startMs = clock.now()
  return async (order, run) => {
    await sleep(clock, 50 + 200 * clock.random(), run.signal)
    const down = (clock.now() - startMs) % cycleMs > cycleMs - outageMs
    if (down) throw new HttpError(503, 'payments: 503 Service Unavailable')
    if (clock.random() < (run.letter ? 0.3 : 0.8))
      throw errorWithCode('ECONNRESET', 'socket hang up')
    return { charged: order.amount }
  }
}

function summarise(clock: Clock): Service['call'] {
  let window = 0
  let calls = 0
  return async (order) => {
    const now = Math.floor(clock.now() / windowMs)
    calls = now === window ? calls + 1 : 1
    window = now
    if (calls <= callsPerWindow)
      return { summary: `order ${order.order}: the customer is satisfied` }
    throw new HttpError(429, 'llm: 429 Too Many Requests', { 'retry-after': '3' })
  }
}

/** Always fails for orders without lines. */
const renderInvoice: Service['call'] = async ({ order, lines }) => {
  if (lines === null) throw new Error(`invoice of order ${order} has no lines to render`)
  return { pages: lines.length }
}

const noScope = 'crm: 403 Forbidden, the key has no scope contacts:write'

const syncCustomer: Service['call'] = async ({ customer }) => {
  if (customer.endsWith('@example.org'))
    throw new HttpError(422, `crm: ${customer} is not a valid address`)
  throw new HttpError(403, noScope)
}

function shipParcel(clock: Clock): Service['call'] {
  return async (order, run) => {
    const slow = clock.random() < (run.letter ? 0.5 : 0.9)
    await sleep(clock, slow ? (run.letter ? 10_000 : 400) : 100, run.signal)
    if (slow) throw errorWithCode('ETIMEDOUT', 'carrier did not answer in time')
    return { parcel: order.order }
  }
}

/** The host of the partner is gone, so that no retry helps. */
const callWebhook: Service['call'] = async () => {
  throw errorWithCode('ECONNREFUSED', 'connect ECONNREFUSED 203.0.113.7:443')
}

/** The code of the broken release fails for every order. */
function indexOrder(clock: Clock): Service['call'] {
  const fixedMs = clock.now() + fixedAfterMs
  return async ({ order }) => {
    if (clock.now() < fixedMs)
      throw new TypeError(`release ${brokenRelease}: cannot read property 'price' of undefined`)
    return { indexed: order }
  }
}

const refund: Service['call'] = async ({ amount }, run) => {
  if (run.letter || amount <= refundLimit) return { refunded: amount }
  throw new Error(`refund of ${amount.toFixed(2)} EUR is over the limit of ${refundLimit}`)
}

/** A failure of the last 24 hours, and what became of it. */
export interface PastFailure {
  queue: string
  order: Order
  error: Error
  failedRuns: number
  resolves: boolean
}

/** `share`: how many of the letters resolve. */
type PastKind = [queue: string, error: () => Error, share: number]

/** The failures of a quarter of an hour of the past: one of each service, and more in an outage. */
export function pastFailures(clock: Clock, isDown: boolean): PastFailure[] {
  const charges = isDown ? 20 : 3
  const failures: PastKind[] = [
    ...Array.from({ length: charges }, (): [string, () => Error, number] =>
      isDown
        ? ['charge-card', () => new HttpError(503, 'payments: 503 Service Unavailable'), 1]
        : ['charge-card', () => errorWithCode('ECONNRESET', 'socket hang up'), 0.98],
    ),
    ['ship-parcel', () => errorWithCode('ETIMEDOUT', 'carrier did not answer in time'), 0.97],
    [
      'summarise-ticket',
      () => new HttpError(429, 'llm: 429 Too Many Requests', { 'retry-after': '3' }),
      1,
    ],
    ...(clock.random() < 0.1
      ? [['sync-customer', () => new HttpError(403, noScope), 0] as PastKind]
      : []),
  ]
  return failures
    .filter(() => isDown || clock.random() < 0.6)
    .map(([queue, error, share]) => ({
      queue,
      order: createOrder(queue, clock),
      error: error(),
      // Letters that are parked at once have no runs.
      failedRuns: share > 0 && clock.random() < 0.3 ? 1 : 0,
      resolves: clock.random() < share,
    }))
}

const tenants = ['acme', 'globex', 'initech']
const customers = [
  'ada@example.com',
  'grace@example.com',
  'linus@example.org',
  'barbara@example.com',
]

/** An order as the callers of a service send it. */
export function createOrder(queue: string, clock: Clock): Order {
  const randomBelow = (below: number): number => Math.floor(clock.random() * below)
  const amount = (queue === 'refund' ? refundLimit + 1 : 5) + randomBelow(40_000) / 100
  const lines =
    queue === 'render-invoice'
      ? null
      : [{ sku: `sku-${randomBelow(900) + 100}`, count: randomBelow(3) + 1 }]
  return {
    order: 10_000 + randomBelow(90_000),
    tenant: tenants[randomBelow(tenants.length)]!,
    customer: customers[randomBelow(customers.length)]!,
    amount,
    currency: 'EUR',
    lines,
  }
}
