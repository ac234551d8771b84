import type { Chance } from '../chance.ts'

/**
 * What a message does to its consumer. Sent in a header, since some bodies cannot be decoded; also
 * in the ledger.
 */
export interface Plan {
  n: number
  kind: MessageKind
  workMs: number
  /** Asks for a reply. */
  replies: boolean
  /** A fault that happens once. */
  fault?: Failpoint
}

/**
 * Doomed messages always fail, flaky ones twice, killers kill their process, garbled ones cannot be
 * decoded.
 */
export type MessageKind = 'good' | 'doomed' | 'flaky' | 'killer' | 'garbled'

/** Where a process dies, is stopped until its receipts have expired, or is asked to exit. */
export interface Failpoint {
  act: 'kill' | 'stop' | 'term'
  point: Point
}

/** `keep` is the write of a dead letter; the reply and the acknowledgement follow it. */
export type Point =
  | 'after-receive'
  | 'mid-handler'
  | 'before-keep'
  | 'after-keep'
  | 'before-ack'
  | 'after-ack'
  | 'before-nack'
  | 'last-failure'

/** The points that every message of a kind reaches. */
const pointsOf: Record<MessageKind, readonly [Failpoint, ...Failpoint[]]> = {
  good: [
    { act: 'kill', point: 'after-receive' },
    { act: 'kill', point: 'mid-handler' },
    { act: 'kill', point: 'before-ack' },
    { act: 'kill', point: 'after-ack' },
    { act: 'stop', point: 'mid-handler' },
    { act: 'stop', point: 'before-ack' },
    { act: 'term', point: 'mid-handler' },
  ],
  doomed: [
    { act: 'kill', point: 'before-keep' },
    { act: 'kill', point: 'after-keep' },
    { act: 'stop', point: 'last-failure' },
    { act: 'stop', point: 'after-keep' },
    { act: 'term', point: 'mid-handler' },
  ],
  flaky: [
    { act: 'kill', point: 'before-nack' },
    { act: 'stop', point: 'before-nack' },
  ],
  killer: [{ act: 'kill', point: 'after-receive' }],
  garbled: [
    { act: 'kill', point: 'before-keep' },
    { act: 'kill', point: 'after-keep' },
  ],
}

const shares: readonly [MessageKind, number][] = [
  ['killer', 0.015],
  ['garbled', 0.08],
  ['doomed', 0.24],
  ['flaky', 0.4],
  ['good', 1],
]

/** Share of messages with a fault, by kind. */
const faultShares: Record<MessageKind, number> = {
  good: 0.06,
  doomed: 0.35,
  flaky: 0.1,
  killer: 0.1,
  garbled: 0.3,
}

/** Failures after which a flaky message succeeds. */
export const flakyFailures = 2
/** Deliveries after which a message is dead-lettered. */
export const maxDeliveries = 4

/** A process that is asked to exit waits this long for its messages, then releases them. */
export const stopMs = 300
const longerThanStopMs = 900

/**
 * Returns a generator of plans. Faults take turns, so that all of them happen; `focus` is
 * preferred.
 */
export function createPlanner(dice: Chance, focus?: Failpoint): () => Plan {
  const turns = new Map<MessageKind, number>()
  const chooseFault = (kind: MessageKind): Failpoint => {
    const all = pointsOf[kind]
    const wanted = all.find(({ act, point }) => act === focus?.act && point === focus.point)
    const turn = turns.get(kind) ?? Math.floor(dice.between(0, all.length))
    turns.set(kind, turn + 1)
    return wanted ?? all[turn % all.length]!
  }
  let n = 0
  return () => {
    const roll = dice.next()
    const [kind] = shares.find(([, below]) => roll < below)!
    const plan: Plan = {
      n: n++,
      kind,
      workMs: kind === 'doomed' ? dice.between(50, 500) : dice.between(1, 60),
      replies: dice.next() < 0.3,
    }
    if (dice.next() >= faultShares[kind]) return plan
    const fault = chooseFault(kind)
    return { ...plan, fault, ...(fault.act === 'term' ? { workMs: longerThanStopMs } : {}) }
  }
}

/** The bytes that are sent for a plan. */
export function bytesOf({ n, kind }: Plan): Uint8Array {
  const text = JSON.stringify({ n, kind })
  return Buffer.from(kind === 'garbled' ? text.slice(0, -1) : text)
}

export const planHeader = 'plan'

/** Undefined if the message is not from the producer. */
export function planOf(headers: Readonly<Record<string, string>>): Plan | undefined {
  const text = headers[planHeader]
  return text === undefined ? undefined : (JSON.parse(text) as Plan)
}
