import { dueAt } from '../../src/letter/order.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { toMs, toTimestamp } from '../../src/letter/time.ts'
import type { Claim, ClaimRequest, LeaseRef } from '../../src/store.ts'
import { isAtRest, type Known } from './known.ts'
import type { Ledger } from './ledger.ts'

/** Claims that find nothing, within a second. Captures by others, results and hints cause some. */
const maxEmptyClaims = 800

/** Watches claims and renewals: one owner at a time, epochs that only grow, every claim counted, lanes in order. */
export class Leases {
  readonly #ledger: Ledger
  /** How often each process claimed for nothing in the present second. */
  readonly #emptyClaims = new Map<string, { second: number; count: number }>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  async claimed(by: string, request: ClaimRequest, { letters, nextDueAt }: Claim): Promise<void> {
    const ledger = this.#ledger
    const nowMs = ledger.storeNowMs()
    const claimable = this.#claimable(request, nowMs)
    if (letters.length > 0 || claimable > 0)
      ledger.log(
        `${by} claim ${request.limit}: ${letters.map((letter) => this.#tell(letter)).join(', ') || 'nothing'}`,
      )
    for (const letter of letters) this.#claim(by, letter, request, nowMs)
    if (letters.length !== Math.min(request.limit, claimable))
      ledger.violate(
        'LIVE',
        `${letters.length} of ${claimable} claimable letters for a limit of ${request.limit}`,
      )
    this.#checkSpin(by, letters.length)
    if (nextDueAt !== undefined && letters.length < request.limit && toMs(nextDueAt) < nowMs)
      ledger.violate('SPIN', `the next letter is due at ${nextDueAt}, which has passed`)
    await ledger.compare(letters.map(({ id }) => id))
  }

  #claimable({ queues }: ClaimRequest, nowMs: number): number {
    const { letters } = this.#ledger
    const now = toTimestamp(nowMs)
    let count = 0
    for (const known of letters.values())
      if ((queues?.includes(known.letter.queue) ?? true) && letters.isClaimable(known, now)) count++
    return count
  }

  #tell({ id, epoch, retries }: DeadLetter): string {
    return `${this.#ledger.nameOf(id)} e${epoch} r${retries}`
  }

  #claim(by: string, letter: DeadLetter, request: ClaimRequest, nowMs: number): void {
    const ledger = this.#ledger
    const known = ledger.letters.get(letter.id)
    if (!known) return ledger.violate('GHOST', `a claim of ${letter.id}, which is not there`)
    const { name, letter: before } = known
    this.#checkTurn(by, known, nowMs)
    if (letter.epoch !== before.epoch + 1)
      ledger.violate('OWN', `${name} went from epoch ${before.epoch} to ${letter.epoch}`)
    const { worker, epoch, expiresAt } = letter.lease ?? {}
    if (worker !== request.worker || epoch !== letter.epoch)
      ledger.violate('OWN', `${name} is leased to ${worker} under epoch ${epoch}`)
    if (expiresAt !== toTimestamp(nowMs + request.leaseMs))
      ledger.violate('OWN', `the lease of ${name} ends at ${expiresAt}`)
    known.counted++
    known.budget.add(letter.epoch)
    known.claims.set(letter.epoch, ledger.world.nowMs)
    if (letter.retries !== known.counted)
      ledger.violate(
        'COUNT',
        `${name} has ${letter.retries} retries after ${known.counted} counted claims`,
      )
    this.#checkLane(known, nowMs)
    known.letter = letter
    known.versions.set(letter.version, 'claim')
    ledger.count('claim', letter)
  }

  /** Whether it may be claimed at all. */
  #checkTurn(by: string, known: Known, nowMs: number): void {
    const ledger = this.#ledger
    const { name, letter, waitsFor } = known
    if (isAtRest(letter)) ledger.violate('TERM', `${name} was claimed while ${letter.state}`)
    else if (toMs(dueAt(letter)!) > nowMs && letter.lease)
      ledger.violate('OWN', `${name} was claimed by ${by} while ${letter.lease.worker} holds it`)
    else if (toMs(dueAt(letter)!) > nowMs)
      ledger.violate('OWN', `${name} was claimed before it was due`)
    if (waitsFor.size > 0) ledger.violate('ORDER', `${name} was claimed while it waits for others`)
    if (letter.state !== 'retrying') return
    ledger.sightings.see('lapsed lease taken over')
    if (!ledger.setup.faulty)
      ledger.violate('OWN', `the lease of ${name} lapsed in a run without faults`)
  }

  /** One letter of a lane is in flight at a time, and the oldest goes first. */
  #checkLane(known: Known, nowMs: number): void {
    const ledger = this.#ledger
    if (known.letter.lane === undefined) return
    for (const other of ledger.letters.laneOf(known.letter)) {
      if (other === known) continue
      const { state, lease, id, epoch } = other.letter
      const isOlder = id < known.letter.id
      if (state === 'retrying' && toMs(lease!.expiresAt) > nowMs)
        ledger.violate(
          'ORDER',
          `${known.name} was claimed while ${other.name} of its lane is in flight`,
        )
      if (state === 'pending' && isOlder && known.letter.state !== 'retrying')
        ledger.violate('ORDER', `${known.name} was claimed before ${other.name} of its lane`)
      if ((state === 'parked' || state === 'exhausted') && isOlder && epoch > 0)
        ledger.sightings.see('lane head came to rest and the next went on')
    }
  }

  /** A worker that finds nothing waits: for what it knows to fall due, for a hint, or for a poll. */
  #checkSpin(by: string, found: number): void {
    const { world } = this.#ledger
    const second = Math.floor(world.nowMs / 1000)
    const last = this.#emptyClaims.get(by)
    const count = (last?.second === second ? last.count : 0) + (found === 0 ? 1 : 0)
    this.#emptyClaims.set(by, { second, count })
    if (count > maxEmptyClaims)
      this.#ledger.violate('SPIN', `${by} claimed ${count} times for nothing within a second`)
  }

  /** The process has heard what it claimed. */
  answered(to: string, { letters }: Claim): void {
    for (const letter of letters) this.#ledger.lifeOf(letter)?.answered.set(letter.epoch, to)
  }

  async renewed(
    by: string,
    leases: readonly LeaseRef[],
    leaseMs: number,
    kept: boolean[],
  ): Promise<void> {
    const ledger = this.#ledger
    ledger.sameLength('renew', leases, kept)
    const end = toTimestamp(ledger.storeNowMs() + leaseMs)
    for (const [index, ref] of leases.entries()) this.#renew(by, ref, end, kept[index] ?? false)
    const told = leases.map(
      ({ id, epoch }, index) => `${ledger.nameOf(id)} e${epoch} ${kept[index] ? 'kept' : 'lost'}`,
    )
    ledger.log(`${by} renew ${told.join(', ')}`)
    await ledger.compare(leases.map(({ id }) => id))
  }

  #renew(by: string, { id, epoch }: LeaseRef, end: string, kept: boolean): void {
    const ledger = this.#ledger
    const known = ledger.letters.get(id)
    const lease =
      known?.letter.state === 'retrying' && known.letter.epoch === epoch
        ? known.letter.lease
        : undefined
    if (!kept) ledger.sightings.see('renew lost')
    if (kept !== (lease !== undefined))
      ledger.violate('FENCE', `a renewal of ${ledger.nameOf(id)} e${epoch} was answered ${kept}`)
    if (!known || !lease) return
    if (lease.worker !== by) ledger.violate('FENCE', `${by} renewed the lease of ${lease.worker}`)
    if (end > lease.expiresAt)
      known.letter = { ...known.letter, lease: { ...lease, expiresAt: end } }
  }
}
