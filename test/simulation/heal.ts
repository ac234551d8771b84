import { isActive, type DeadLetter } from '../../src/letter/letter.ts'
import { dueAt } from '../../src/letter/order.ts'
import { toMs } from '../../src/letter/time.ts'
import { checkEach } from './canaries.ts'
import type { Clients } from './captures.ts'
import type { House } from './house.ts'
import type { Known } from './known.ts'
import type { SimProcess } from './sim-process.ts'

/** Rounds of a lease each. Chains of letters that kill their process one after the other take the longest. */
const maxRounds = 1500

/** Ends all faults, and lets the house work off what is left. Whatever is then still to do would be so for ever. */
export async function heal(house: House, clients: Clients): Promise<void> {
  const { world, setup } = house
  world.log('all faults end')
  house.healed = true
  house.storeOffsetMs = 0
  for (const process of house.processes) {
    process.offsetMs = 0
    process.pausedUntilMs = 0
    if (!process.alive || process.leaving || process.started || !process.dlq) continue
    process.started = true
    process.dlq.start()
  }
  // Whoever lives must be able to do it alone, as long as it can run everything.
  const isAble = ({ handles }: SimProcess): boolean =>
    setup.queues.every((queue) => handles.includes(queue))
  if (!house.living().some(isAble)) await house.spawn()
  // Calls that hang arrive after all.
  if (!(await world.pass(8 * setup.leaseMs))) return
  for (let tries = 0; tries < maxTries; tries++) {
    await workOff(house)
    const before = claimsOf(house)
    if (!(await world.pass(4 * (setup.options.sweepMs ?? 0) + 2 * setup.leaseMs))) return
    if (claimsOf(house) === before) return checkEach(house, clients)
    // The sweep put away a letter that others waited for, and these have gone on.
  }
  world.violate('TERM', 'letters are claimed again and again after all was done')
}

const maxTries = 20

function claimsOf({ oracle }: House): number {
  return [...oracle.ledger.totals.values()].reduce(
    (sum, { action, count }) => sum + (action === 'claim' ? count : 0),
    0,
  )
}

async function workOff(house: House): Promise<void> {
  const { world, setup } = house
  for (let round = 0; await world.pass(setup.leaseMs); round++) {
    const left = unfinished(house)
    if (left.length === 0) return
    if (round === maxRounds) return stuck(house, left)
    skipToNextDue(house, left)
  }
}

/**
 * Letters that something must still happen to. Who waits for a letter at rest is not among them, nor are those that
 * wait for each other: clocks that disagree can put a letter behind one that depends on it.
 */
function unfinished({ oracle }: House): Known[] {
  const { letters } = oracle.ledger
  const active = [...letters.values()].filter(
    ({ letter }) => isActive(letter.state) || isUnhandled(letter),
  )
  const moving = new Set<Known>()
  const willMove = (known: Known): boolean => {
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

/** Parked for want of a handler, and by now there is one for every queue. */
function isUnhandled({ state, reason }: DeadLetter): boolean {
  return state === 'parked' && reason === 'no-handler'
}

/** The sweep parks who waits for such a letter. */
function isGone(known: Known | undefined): boolean {
  return known === undefined || known.letter.state === 'archived'
}

/** Clocks that were ahead have left letters that are due in a day. Nobody has to wait for that. */
function skipToNextDue({ world, setup, oracle }: House, left: readonly Known[]): void {
  const { letters } = oracle.ledger
  const free = left.filter((known) => isActive(known.letter.state) && !letters.isHeld(known))
  const nextMs = Math.min(...free.map(({ letter }) => toMs(dueAt(letter)!)))
  const aheadMs = nextMs - world.wallMs
  if (aheadMs > 2 * setup.leaseMs && Number.isFinite(aheadMs))
    world.skipWall(aheadMs - setup.leaseMs)
}

function stuck({ world, oracle }: House, left: readonly Known[]): void {
  const told = left
    .slice(0, 8)
    .map(({ name, waitsFor, letter: { id, queue, lane = 'none', state, retryAt, lease } }) => {
      const waits = [...waitsFor].map((other) => oracle.ledger.nameOf(other)).join(' ')
      return `${name} (${id.slice(0, 18)}) of ${queue}, lane ${lane}, ${state} ${retryAt ?? lease?.expiresAt}, waits for ${waits || 'none'}`
    })
  world.violate('LIVE', `${left.length} letters are not worked off: ${told.join('; ')}`)
}
