import type { QueueOptions } from '../../src/options/options.ts'
import type { RetryPolicy } from '../../src/letter/letter.ts'
import type { Capacity } from '../../src/store.ts'
import type { Dice } from './dice.ts'

/** Probabilities of the faults of one store call. */
export interface FaultRates {
  /** Refused, and nothing was written. */
  refused: number
  /** Written, and then answered with an error. */
  unknown: number
  /** The request or the reply takes up to one lease. */
  slow: number
  /** The request or the reply takes several leases. */
  hung: number
  crashBefore: number
  crashAfter: number
}

/** Setup of one run, drawn from its seed, with tight limits: short leases, small batches. */
export interface Setup {
  faulty: boolean
  rates: FaultRates
  /** The only method with faults, if set. */
  onlyVerb: string | undefined
  latencyMs: number
  processes: number
  /**
   * The wall clock of leases: that of the store, or that of the caller, as with an embedded store.
   */
  leaseClock: 'store' | 'caller'
  /** Maximum clock skew. */
  skewMs: number
  steps: number
  stepMs: number
  queues: string[]
  capacity: Capacity | undefined
  leaseMs: number
  timeoutMs: number
  graceMs: number
  options: QueueOptions
}

const hourMs = 3_600_000

const noFaults: FaultRates = {
  refused: 0,
  unknown: 0,
  slow: 0,
  hung: 0,
  crashBefore: 0,
  crashAfter: 0,
}

export function drawSetup(dice: Dice): Setup {
  const faulty = !dice.chance(0.25)
  const leaseMs = dice.pick([50, 100, 200, 1000])
  const timeoutMs = leaseMs * dice.pick([0.4, 1, 3])
  const graceMs = leaseMs * dice.pick([0, 0.2, 1])
  const capacity = drawCapacity(dice)
  return {
    faulty,
    rates: faulty ? drawRates(dice) : noFaults,
    onlyVerb:
      faulty && dice.chance(0.2) ? dice.pick(['add', 'claim', 'apply', 'renew', 'get']) : undefined,
    latencyMs: leaseMs * dice.pick([0, 0.01, 0.05]),
    processes: dice.whole(1, 4),
    leaseClock: dice.chance(0.3) ? 'caller' : 'store',
    skewMs: faulty ? dice.pick([0, 0, 0.5 * leaseMs, 5 * leaseMs, 50 * leaseMs, hourMs]) : 0,
    steps: dice.whole(60, 160),
    stepMs: leaseMs * dice.pick([0.1, 0.25, 0.5]),
    queues: ['mail', 'charge', 'index'].slice(0, dice.whole(1, 3)),
    capacity,
    leaseMs,
    timeoutMs,
    graceMs,
    options: {
      leaseMs,
      timeoutMs,
      graceMs,
      pollMs: leaseMs * dice.pick([0.3, 0.5, 1, 2]),
      sweepMs: leaseMs * dice.pick([1, 3, 10]),
      claimBatch: dice.pick([1, 2, 5, 10]),
      maxConcurrent: dice.pick([1, 2, 4, 10]),
      maxRetries: dice.whole(1, 4),
      unknownRetries: dice.whole(1, 3),
      backoff: drawBackoff(dice, leaseMs),
      breaker: dice.chance(0.4)
        ? false
        : {
            failures: dice.whole(2, 6),
            openMs: leaseMs * dice.pick([0.5, 2]),
            maxOpenMs: leaseMs * dice.pick([2, 4]),
            patienceMs: leaseMs * dice.pick([0, 5, 20]),
            probes: dice.whole(1, 2),
            successes: dice.whole(1, 2),
          },
      ...(dice.chance(0.3) ? { retention: drawRetention(dice, leaseMs) } : {}),
      ...capacity,
    },
  }
}

function drawRates(dice: Dice): FaultRates {
  const rate = (): number => dice.pick([0, 0, 0.01, 0.04, 0.12])
  const crash = (): number => dice.pick([0, 0, 0.003, 0.01])
  return {
    refused: rate(),
    unknown: rate(),
    slow: rate(),
    hung: rate() / 2,
    crashBefore: crash(),
    crashAfter: crash(),
  }
}

function drawCapacity(dice: Dice): Capacity | undefined {
  if (!dice.chance(0.3)) return undefined
  return { maxItems: dice.whole(5, 15), overflow: dice.pick(['reject', 'evict-resolved']) }
}

export function drawBackoff(dice: Dice, leaseMs: number): RetryPolicy {
  const delayMs = leaseMs * dice.pick([0.1, 0.5, 2])
  return dice.pick<RetryPolicy>([
    { kind: 'immediate' },
    { kind: 'fixed', delayMs },
    { kind: 'linear', stepMs: delayMs, maxMs: 3 * delayMs },
    { kind: 'exponential', baseMs: delayMs, factor: 2, maxMs: 4 * delayMs, jitter: 'full' },
  ])
}

function drawRetention(dice: Dice, leaseMs: number): NonNullable<QueueOptions['retention']> {
  return {
    archiveAfterMs: leaseMs * dice.pick([1, 5]),
    ...(dice.chance(0.5) ? { removeAfterMs: leaseMs * dice.pick([2, 10]) } : {}),
  }
}
