import type { DeadLetter } from '../../src/letter/letter.ts'
import { isLegal, moveTable, type Move } from '../../src/letter/move-table.ts'
import { countsOf } from '../../src/letter/counts.ts'
import { withChange, type Change } from '../../src/letter/moves.ts'
import { matches, type LetterFilter } from '../../src/letter/query.ts'
import { toMs } from '../../src/letter/time.ts'
import type { ApplyResult } from '../../src/store.ts'
import { isAtRest, isDone, limitOf, type ExpectedLetter } from './expected-letters.ts'
import type { Ledger } from './ledger.ts'

/**
 * Checks results, moves and removals: guards hold, settled letters stay settled, counts are right.
 */
export class Changes {
  readonly #ledger: Ledger

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  async applied(by: string, changes: readonly Change[], results: ApplyResult[]): Promise<void> {
    this.#ledger.expectSameLength('apply', changes, results)
    for (const [index, change] of changes.entries()) this.#apply(by, change, results[index]!)
    await this.#ledger.compare(changes.map(({ id }) => id))
  }

  #apply(by: string, change: Change, result: ApplyResult): void {
    const ledger = this.#ledger
    const { id, guard, action, entry } = change
    const known = ledger.letters.get(id)
    const name = ledger.nameOf(id)
    const guardText = 'epoch' in guard ? `e${guard.epoch}` : `v${guard.version}`
    ledger.log(
      `${by} ${action} ${name} ${guardText} ${entry.from}→${entry.to} by ${entry.actor}: ${result}`,
    )
    const expected = !known ? 'missing' : guardHolds(known.letter, change) ? 'written' : 'conflict'
    if (result !== expected) {
      const invariant = 'epoch' in guard ? 'FENCE' : 'TERM'
      return ledger.violate(
        invariant,
        `${action} of ${name} ${guardText} was answered ${result} instead of ${expected}`,
      )
    }
    if (result === 'written') return this.#written(known!, change)
    if ('version' in guard) {
      if (action === 'edit') ledger.coverage.record('edit raced by a worker')
      return
    }
    ledger.coverage.record('late settle rejected')
    if (known && known.letter.epoch > guard.epoch)
      ledger.coverage.record('rescue beat a late settle')
  }

  #written(known: ExpectedLetter, change: Change): void {
    const ledger = this.#ledger
    const { letter: before, name } = known
    const { action, entry, guard, set } = change
    if (
      !(action in moveTable) ||
      !isLegal(action as Move, before.state) ||
      entry.from !== before.state
    )
      ledger.violate(
        'TERM',
        `${action} of ${name} from ${before.state}, which its entry calls ${entry.from}`,
      )
    if ('epoch' in guard) this.#settled(known, change, guard.epoch)
    else this.#moved(known, change)
    if (set.retries !== undefined && set.retries !== known.counted)
      ledger.violate(
        'COUNT',
        `${action} set ${set.retries} retries of ${name} instead of ${known.counted}`,
      )
    this.#recordCoverage(known, change)
    known.letter = withChange(before, change)
    known.versions.set(known.letter.version, action)
    for (const counted of countsOf(change)) ledger.count(counted, known.letter)
    this.#checkShape(known)
    if (!isDone(before)) ledger.freeDependents(known)
  }

  /** A worker's result. */
  #settled(known: ExpectedLetter, { action, entry, set }: Change, epoch: number): void {
    const ledger = this.#ledger
    const { name, letter } = known
    const holder = letter.lease?.worker
    if (entry.actor !== holder)
      ledger.violate('FENCE', `${entry.actor} settled ${name}, which ${holder} holds`)
    if (known.settles.has(epoch))
      ledger.violate('FENCE', `two results of ${name} e${epoch} were accepted`)
    known.settles.set(epoch, { action, actor: entry.actor })
    const ended = known.ends.get(epoch)
    const reportsFailure =
      action === 'reschedule' || action === 'exhaust' || set.failure !== undefined
    const resolvesWork = ended === 'done' || ended === 'done late'
    if ((action === 'resolve' && !resolvesWork) || (reportsFailure && ended === 'done'))
      ledger.violate(
        'FENCE',
        `${action} of ${name} e${epoch}, whose handler is ${ended ?? 'not done'}`,
      )
    const unfit = action === 'park' && set.retries !== undefined && set.retries < letter.retries
    if (action === 'release' || unfit) {
      known.counted = Math.max(0, known.counted - 1)
      known.budget.delete(epoch)
    }
    if (unfit && known.starts.has(epoch))
      ledger.violate('COUNT', `${name} ran and was parked as if it had not`)
    if (set.reason === 'crash-loop') this.#checkCrashLoop(known)
    if (toMs(letter.lease!.expiresAt) < ledger.storeNowMs())
      ledger.coverage.record('late settle beat the rescue')
  }

  /**
   * Claims over the limit are not runs if their answer was lost or their worker died before
   * parking.
   */
  #checkCrashLoop(known: ExpectedLetter): void {
    const limit = limitOf(known.letter)
    if (known.counted < limit)
      this.#ledger.violate(
        'COUNT',
        `${known.name} was parked as a crash loop after ${known.counted} of ${limit} runs`,
      )
    known.counted = limit
  }

  /** A person's move, or the sweep's. */
  #moved(known: ExpectedLetter, { action, set }: Change): void {
    const { coverage } = this.#ledger
    const { letter } = known
    if (
      isAtRest(letter) &&
      set.state === 'pending' &&
      (action === 'retry' || action === 'review')
    ) {
      known.counted = 0
      known.budget.clear()
    }
    const reportsRun =
      action === 'reschedule' ||
      action === 'exhaust' ||
      (action === 'park' && set.failure !== undefined)
    if (reportsRun && letter.state === 'pending') known.counted++
    if (letter.state === 'retrying') coverage.record('person settled during a lease')
    if (set.reason === 'dependency-failed' && !this.#isOrphan(known))
      this.#ledger.violate(
        'ORDER',
        `${known.name} was parked for a dependency, but none of its dependencies is gone`,
      )
  }

  /**
   * Waits for a letter that is gone. An id can be captured again after its removal, so all
   * incarnations count.
   */
  #isOrphan({ waitsFor, letter: { dependsOn = [] } }: ExpectedLetter): boolean {
    const { letters } = this.#ledger
    const isGone = (id: string): boolean =>
      (letters.get(id)?.letter.state ?? 'archived') === 'archived'
    return (
      [...waitsFor].some(isGone) || dependsOn.some((id) => this.#ledger.incarnations(id).length > 1)
    )
  }

  #recordCoverage({ waitsFor, letter }: ExpectedLetter, { action, set, entry }: Change): void {
    const { coverage } = this.#ledger
    if (action === 'release') coverage.record('graceful release')
    if (set.reason === 'crash-loop') coverage.record('poison parked')
    if (set.reason === 'expired') coverage.record('expired letter parked')
    if (set.reason === 'dependency-failed') coverage.record('orphan parked')
    if (set.reason === 'no-handler') coverage.record('letter without a handler parked')
    if (action === 'wake') coverage.record('letter woken by a new handler')
    if (action === 'archive' && entry.actor === 'sweep')
      coverage.record('letter archived by the sweep')
    if (waitsFor.size > 0 && letter.state === 'pending')
      coverage.record('dependency held a letter back')
  }

  /** Checks the fields that a state requires. */
  #checkShape({ name, letter }: ExpectedLetter): void {
    const { state, lease, retryAt, settledAt, reason, history } = letter
    const wrongs: [boolean, string][] = [
      [(lease !== undefined) !== (state === 'retrying'), 'its lease'],
      [state === 'pending' && retryAt === undefined, 'no retryAt'],
      [isAtRest(letter) !== (settledAt !== undefined), `settledAt ${settledAt}`],
      [(state === 'parked' || state === 'exhausted') && reason === undefined, 'no reason'],
      [history.at(-1)?.to !== state, `a history that ends in ${history.at(-1)?.to}`],
    ]
    for (const [isWrong, what] of wrongs)
      if (isWrong) this.#ledger.violate('CONS', `${name} is ${state} with ${what}`)
  }

  async removed(by: string, which: LetterFilter, count: number): Promise<void> {
    const ledger = this.#ledger
    const matching = [...ledger.letters.values()].filter(
      ({ letter }) => letter.state !== 'retrying' && matches(letter, which),
    )
    if (count === 0 && matching.length === 0) return
    ledger.log(`${by} remove ${matching.map(({ name }) => name).join(', ')}: ${count}`)
    const missing = await ledger.findMissing()
    for (const { name, letter } of missing.filter((known) => !matching.includes(known)))
      ledger.violate('LOSS', `${name}, ${letter.state}, was removed and does not match`)
    if (count !== matching.length || missing.length !== count)
      ledger.violate(
        'CONS',
        `${count} removed, ${matching.length} matched, ${missing.length} are missing`,
      )
    for (const known of missing) {
      ledger.coverage.record('letter removed')
      ledger.drop(known, 'remove')
    }
  }
}

function guardHolds(letter: DeadLetter, { guard }: Change): boolean {
  if ('version' in guard) return letter.version === guard.version
  return letter.state === 'retrying' && letter.epoch === guard.epoch
}
