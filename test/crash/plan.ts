import { createHash } from 'node:crypto'
import type { Reason, State } from '../../src/letter/letter.ts'
import type { Chance } from './chance.ts'
import type { StopPoint } from './ledger.ts'

/** What a letter does to its worker. The plan is the payload, and is also in the ledger. */
export type Plan = { n: number; maxRetries: number; workMs: number; pad: string } & Behaviour

type Behaviour =
  | { kind: 'fine' }
  /** Fails on its first runs. */
  | { kind: 'flaky'; failures: number }
  /** Never succeeds. */
  | { kind: 'doomed' }
  /** Blocks the event loop of its first worker for longer than a lease. */
  | { kind: 'blocker' }
  /** Kills the process that runs it. */
  | { kind: 'poison'; how: 'SIGKILL' | 'abort' | 'exit' }
  /** Stops its first process until another one has settled the letter. */
  | { kind: 'pauser'; point: StopPoint }

const poisonEvery = 77

export function makePlan(n: number, dice: Chance): Plan {
  const base = { n, workMs: dice.between(1, 60), pad: 'x'.repeat(dice.between(0, 300)) }
  if (n % poisonEvery === 5)
    return { ...base, kind: 'poison', how: dice.pick(['SIGKILL', 'abort', 'exit']), maxRetries: 3 }
  const roll = dice.next()
  if (roll < 0.01) return { ...base, kind: 'blocker', maxRetries: 6 }
  if (roll < 0.7) return { ...base, kind: 'fine', maxRetries: 6 }
  if (roll < 0.9) return { ...base, kind: 'flaky', failures: dice.pick([1, 2]), maxRetries: 6 }
  return { ...base, kind: 'doomed', maxRetries: dice.pick([2, 3]) }
}

export function pauserPlan(n: number, point: StopPoint): Plan {
  return { n, workMs: 1, pad: '', kind: 'pauser', point, maxRetries: 6 }
}

/** The bytes that are captured for a plan. */
export function bytesOf(plan: Plan): Uint8Array {
  return Buffer.from(JSON.stringify(plan))
}

export function shaOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/**
 * Whether a letter with this plan may have this final state. Any letter can be parked as a crash
 * loop when its workers were killed often enough; the counted retries confirm this.
 */
export function mayEnd(plan: Plan, state: State, reason: Reason | undefined): boolean {
  if (state === 'parked') return reason === 'crash-loop'
  if (plan.kind === 'poison') return false
  return state === (plan.kind === 'doomed' ? 'exhausted' : 'resolved')
}
