import { dueAt } from '../../src/letter/order.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { toMs, toTimestamp } from '../../src/letter/time.ts'
import type { Claim, ClaimRequest, LeaseRef } from '../../src/store.ts'
import { isAtRest, type ExpectedLetter } from './expected-letters.ts'
import type { Ledger } from './ledger.ts'

/** Maximum number of empty claims per second. Captures by others, results and hints cause some. */
const maxEmptyClaims = 800

/**
 * Checks claims and renewals: one owner at a time, growing epochs, counted claims, ordered lanes.
 */
export class Leases {
  readonly #ledger: Ledger
  /** Empty claims of each process in the current second. */
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
        `${by} claim ${request.limit}: ${letters.map((letter) => this.#describe(letter)).join(', ') || 'nothing'}`,
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

  #describe({ id, epoch, retries }: DeadLetter): string {
    return `${this.#ledger.nameOf(id)} e${epoch} r${retries}`
  }

  #claim(by: string, letter: DeadLetter, request: ClaimRequest, nowMs: number): void {
    const ledger = this.#ledger
    const known = ledger.letters.get(letter.id)
    if (!known) return ledger.violate('GHOST', `a claim of ${letter.id}, which does not exist`)
    const { name, letter: before } = known
    this.#checkClaimable(by, known, nowMs)
    if (letter.epoch !== before.epoch + 1)
      ledger.violate('OWN', `${name} went from epoch ${before.epoch} to ${letter.epoch}`)
    const { worker, epoch, expiresAt } = letter.lease ?? {}
    if (worker !== request.worker || epoch !== letter.epoch)
      ledger.violate('OWN', `${name} is leased to ${worker} under epoch ${epoch}`)
    if (expiresAt !== toTimestamp(nowMs + request.leaseMs))
      ledger.violate('OWN', `the lease of ${name} ends at ${expiresAt}`)
    known.counted++
    known.budget.add(letter.epoch)
    known.leasedMs.set(letter.epoch, ledger.scheduler.nowMs)
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

  /** Checks that the letter may be claimed. */
  #checkClaimable(by: string, known: ExpectedLetter, nowMs: number): void {
    const ledger = this.#ledger
    const { name, letter, waitsFor } = known
    if (isAtRest(letter)) ledger.violate('TERM', `${name} was claimed while ${letter.state}`)
    else if (toMs(dueAt(letter)!) > nowMs && letter.lease)
      ledger.violate('OWN', `${name} was claimed by ${by} while ${letter.lease.worker} holds it`)
    else if (toMs(dueAt(letter)!) > nowMs)
      ledger.violate('OWN', `${name} was claimed before it was due`)
    if (waitsFor.size > 0) ledger.violate('ORDER', `${name} was claimed while it waits for others`)
    if (letter.state !== 'retrying') return
    ledger.coverage.record('expired lease taken over')
    if (!ledger.setup.faulty)
      ledger.violate('OWN', `the lease of ${name} expired in a run without faults`)
  }

  /** One letter of a lane is in flight at a time, and the oldest goes first. */
  #checkLane(known: ExpectedLetter, nowMs: number): void {
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
        ledger.coverage.record('lane head settled and the next was claimed')
    }
  }

  /** A worker without letters must wait: for a known due time, a hint, or a poll. */
  #checkSpin(by: string, found: number): void {
    const { scheduler } = this.#ledger
    const second = Math.floor(scheduler.nowMs / 1000)
    const last = this.#emptyClaims.get(by)
    const count = (last?.second === second ? last.count : 0) + (found === 0 ? 1 : 0)
    this.#emptyClaims.set(by, { second, count })
    if (count > maxEmptyClaims)
      this.#ledger.violate('SPIN', `${by} claimed ${count} times without a result within a second`)
  }

  /** The process has received the answer of its claim. */
  answered(to: string, { letters }: Claim): void {
    for (const letter of letters) this.#ledger.incarnationOf(letter)?.answered.set(letter.epoch, to)
  }

  async renewed(
    by: string,
    leases: readonly LeaseRef[],
    leaseMs: number,
    kept: boolean[],
  ): Promise<void> {
    const ledger = this.#ledger
    ledger.expectSameLength('renew', leases, kept)
    const end = toTimestamp(ledger.storeNowMs() + leaseMs)
    for (const [index, ref] of leases.entries()) this.#renew(by, ref, end, kept[index] ?? false)
    const renewals = leases.map(
      ({ id, epoch }, index) => `${ledger.nameOf(id)} e${epoch} ${kept[index] ? 'kept' : 'lost'}`,
    )
    ledger.log(`${by} renew ${renewals.join(', ')}`)
    await ledger.compare(leases.map(({ id }) => id))
  }

  #renew(by: string, { id, epoch }: LeaseRef, end: string, kept: boolean): void {
    const ledger = this.#ledger
    const known = ledger.letters.get(id)
    const lease =
      known?.letter.state === 'retrying' && known.letter.epoch === epoch
        ? known.letter.lease
        : undefined
    if (!kept) ledger.coverage.record('renew lost')
    if (kept !== (lease !== undefined))
      ledger.violate('FENCE', `a renewal of ${ledger.nameOf(id)} e${epoch} was answered ${kept}`)
    if (!known || !lease) return
    if (lease.worker !== by) ledger.violate('FENCE', `${by} renewed the lease of ${lease.worker}`)
    known.leasedMs.set(epoch, ledger.scheduler.nowMs)
    if (end > lease.expiresAt)
      known.letter = { ...known.letter, lease: { ...lease, expiresAt: end } }
  }
}
