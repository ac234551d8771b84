import type { Chance } from '../chance.ts'

/** What a message will do to its consumer. It travels in a header, since some bodies cannot be read; the ledger has it too. */
export interface Plan {
  n: number
  kind: MessageKind
  workMs: number
  /** Asks for a reply. */
  replies: boolean
  /** A fault of its own, which comes once. */
  fault?: Failpoint
}

/** Doomed ones always fail, flaky ones twice, killers end the process that runs them, garbled ones cannot be decoded. */
export type MessageKind = 'good' | 'doomed' | 'flaky' | 'killer' | 'garbled'

/** Where a process dies, stands still until its receipts have lapsed, or is asked to end. */
export interface Failpoint {
  act: 'kill' | 'stop' | 'term'
  point: Point
}

/** Keeping is the write of a dead letter; the reply and the acknowledgement come after it. */
export type Point =
  | 'after-receive'
  | 'mid-handler'
  | 'before-keep'
  | 'after-keep'
  | 'before-ack'
  | 'after-ack'
  | 'before-nack'
  | 'last-failure'

/** The points that a message of this kind is sure to come to. */
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

/** How many messages bring a fault. Those that die have more to go wrong on their way. */
const faulty: Record<MessageKind, number> = {
  good: 0.06,
  doomed: 0.35,
  flaky: 0.1,
  killer: 0.1,
  garbled: 0.3,
}

/** Failures after which a flaky one goes well. */
export const flakyFailures = 2
/** Deliveries after which a message is dead-lettered. */
export const maxDeliveries = 4

/** A process that is asked to end waits this long for its messages, and then gives them back. */
export const stopMs = 300
const longerThanStopMs = 900

/** Plans, one after the other. Faults are dealt in turn, so that all of them come; with `focus`, that one wherever it can be. */
export function planner(dice: Chance, focus?: Failpoint): () => Plan {
  const dealt = new Map<MessageKind, number>()
  const deal = (kind: MessageKind): Failpoint => {
    const all = pointsOf[kind]
    const wanted = all.find(({ act, point }) => act === focus?.act && point === focus.point)
    const turn = dealt.get(kind) ?? Math.floor(dice.between(0, all.length))
    dealt.set(kind, turn + 1)
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
    if (dice.next() >= faulty[kind]) return plan
    const fault = deal(kind)
    return { ...plan, fault, ...(fault.act === 'term' ? { workMs: longerThanStopMs } : {}) }
  }
}

/** The bytes that are sent for a plan. */
export function bytesOf({ n, kind }: Plan): Uint8Array {
  const text = JSON.stringify({ n, kind })
  return Buffer.from(kind === 'garbled' ? text.slice(0, -1) : text)
}

export const planHeader = 'plan'

/** Undefined: nobody of ours has sent it. */
export function planOf(headers: Readonly<Record<string, string>>): Plan | undefined {
  const text = headers[planHeader]
  return text === undefined ? undefined : (JSON.parse(text) as Plan)
}
