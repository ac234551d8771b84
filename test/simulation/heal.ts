import { isActive, type DeadLetter } from '../../src/letter/letter.ts'
import { dueAt } from '../../src/letter/order.ts'
import { toMs } from '../../src/letter/time.ts'
import { checkEach } from './canaries.ts'
import type { Clients } from './captures.ts'
import type { System } from './system.ts'
import type { ExpectedLetter } from './expected-letters.ts'
import type { SimProcess } from './sim-process.ts'

/** Rounds of one lease each. Chains of letters that kill their process take the longest. */
const maxRounds = 1500

/**
 * Ends all faults and lets the system settle the remaining letters. Letters left after that are
 * stuck.
 */
export async function heal(system: System, clients: Clients): Promise<void> {
  const { scheduler, setup } = system
  scheduler.log('all faults end')
  system.healed = true
  system.storeOffsetMs = 0
  for (const process of system.processes) {
    process.offsetMs = 0
    process.pausedUntilMs = 0
    if (!process.alive || process.leaving || process.started || !process.dlq) continue
    process.started = true
    process.dlq.start()
  }
  // One process that handles all queues must be enough.
  const isAble = ({ handles }: SimProcess): boolean =>
    setup.queues.every((queue) => handles.includes(queue))
  if (!system.liveProcesses().some(isAble)) await system.spawn()
  // Hung calls complete in this time.
  if (!(await scheduler.advance(8 * setup.leaseMs))) return
  for (let tries = 0; tries < maxTries; tries++) {
    await settleAll(system)
    const before = countClaims(system)
    if (!(await scheduler.advance(4 * (setup.options.sweepMs ?? 0) + 2 * setup.leaseMs))) return
    if (countClaims(system) === before) return checkEach(system, clients)
    // The sweep archived a letter that others waited for, and these were claimed.
  }
  scheduler.violate('TERM', 'letters are still claimed after all were settled')
}

const maxTries = 20

function countClaims({ oracle }: System): number {
  return [...oracle.ledger.totals.values()].reduce(
    (sum, { action, count }) => sum + (action === 'claim' ? count : 0),
    0,
  )
}

async function settleAll(system: System): Promise<void> {
  const { scheduler, setup } = system
  for (let round = 0; await scheduler.advance(setup.leaseMs); round++) {
    const left = findUnfinished(system)
    if (left.length === 0) return
    if (round === maxRounds) return reportStuck(system, left)
    skipToNextDue(system, left)
  }
}

/**
 * Letters that must still be settled. Excludes letters that wait for a settled letter or for each
 * other: with clock skew, a letter can be queued behind one that depends on it.
 */
function findUnfinished({ oracle }: System): ExpectedLetter[] {
  const { letters } = oracle.ledger
  const active = [...letters.values()].filter(
    ({ letter }) => isActive(letter.state) || isUnhandled(letter),
  )
  const moving = new Set<ExpectedLetter>()
  const willMove = (known: ExpectedLetter): boolean => {
    const { id, lane } = known.letter
    const ahead =
      lane === undefined ? [] : letters.laneOf(known.letter).filter((other) => other.letter.id < id)
    return (
      [...known.waitsFor].every(
        (other) => isGone(letters.get(other)) || moving.has(letters.get(other)!),
      ) && ahead.every((other) => !isActive(other.letter.state) || moving.has(other))
    )
  }
  for (let size = -1; size < moving.size;) {
    size = moving.size
    for (const known of active) if (willMove(known)) moving.add(known)
  }
  return [...moving]
}

/** Parked without a handler, although now every queue has one. */
function isUnhandled({ state, reason }: DeadLetter): boolean {
  return state === 'parked' && reason === 'no-handler'
}

/** The sweep parks letters that wait for such a letter. */
function isGone(known: ExpectedLetter | undefined): boolean {
  return known === undefined || known.letter.state === 'archived'
}

/** Skips waiting times: clocks that were ahead have left letters that are due in a day. */
function skipToNextDue(
  { scheduler, setup, oracle }: System,
  left: readonly ExpectedLetter[],
): void {
  const { letters } = oracle.ledger
  const free = left.filter((known) => isActive(known.letter.state) && !letters.isHeld(known))
  const nextMs = Math.min(...free.map(({ letter }) => toMs(dueAt(letter)!)))
  const aheadMs = nextMs - scheduler.wallMs
  if (aheadMs > 2 * setup.leaseMs && Number.isFinite(aheadMs))
    scheduler.skipWall(aheadMs - setup.leaseMs)
}

function reportStuck({ scheduler, oracle }: System, left: readonly ExpectedLetter[]): void {
  const descriptions = left
    .slice(0, 8)
    .map(({ name, waitsFor, letter: { id, queue, lane = 'none', state, retryAt, lease } }) => {
      const waits = [...waitsFor].map((other) => oracle.ledger.nameOf(other)).join(' ')
      return `${name} (${id.slice(0, 18)}) of ${queue}, lane ${lane}, ${state} ${retryAt ?? lease?.expiresAt}, waits for ${waits || 'none'}`
    })
  scheduler.violate('LIVE', `${left.length} letters are not settled: ${descriptions.join('; ')}`)
}
