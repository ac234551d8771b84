import { RedriveError } from '../../src/errors.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { Change } from '../../src/letter/moves.ts'
import type { RedriveEvent } from '../../src/observer.ts'
import type { Run } from '../../src/redelivery/run.ts'
import type { ApplyResult } from '../../src/store.ts'
import { limitOf } from './expected-letters.ts'
import type { Ledger } from './ledger.ts'

/** What one process reported about one run: one epoch of one letter. */
interface RunReport {
  who: string
  id: string
  epoch: number
  /** Number of settled events. */
  settled: number
  /** Number of lease-lost events. */
  lost: number
  /** The last answer of the store to the result. */
  answer: ApplyResult | undefined
}

const settledActions = {
  resolved: 'resolve',
  rescheduled: 'reschedule',
  exhausted: 'exhaust',
  parked: 'park',
  released: 'release',
} as const

/** Checks which handlers run in the processes, and which events they emit. */
export class RunObserver {
  readonly #ledger: Ledger
  readonly #reports = new Map<string, RunReport>()
  /** The letters of the last claim of each process. */
  readonly #lastClaims = new Map<string, DeadLetter[]>()
  /** Runs (process, id and epoch) that were started, or settled without a start. */
  readonly #startedRuns = new Set<string>()
  readonly #openBreakers = new Set<string>()
  readonly #failedSettles = new Set<string>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  #of(who: string, id: string, epoch: number, known = this.#ledger.of(id)): RunReport {
    const key = `${who} ${known?.name ?? id} ${epoch}`
    let report = this.#reports.get(key)
    if (!report) {
      report = { who, id, epoch, settled: 0, lost: 0, answer: undefined }
      this.#reports.set(key, report)
    }
    return report
  }

  /**
   * A process received its claimed letters. Before its next claim, it must have started all of
   * them.
   */
  claimAnswered(who: string, letters: DeadLetter[]): void {
    for (const { id, epoch } of this.#lastClaims.get(who) ?? [])
      if (!this.#startedRuns.has(`${who} ${id} ${epoch}`))
        this.#ledger.violate(
          'COUNT',
          `${who} was given ${this.#ledger.nameOf(id)} e${epoch} and did not start it`,
        )
    this.#lastClaims.set(who, letters)
  }

  settling(who: string, changes: readonly Change[]): void {
    for (const { id, guard } of changes)
      if ('epoch' in guard) this.#startedRuns.add(`${who} ${id} ${guard.epoch}`)
  }

  runStarted(who: string, { letter, attempt, epoch }: Run): void {
    this.#startedRuns.add(`${who} ${letter.id} ${epoch}`)
    const known = this.#ledger.incarnationOf(letter)
    this.#ledger.log(`${who} runs ${known?.name} e${epoch} attempt ${attempt}`)
    if (!known) return this.#ledger.violate('GHOST', `${who} runs a letter that never existed`)
    const { name } = known
    if (known.answered.get(epoch) !== who)
      this.#ledger.violate('OWN', `${who} runs ${name} e${epoch}, which it was not given`)
    if (known.starts.has(epoch))
      this.#ledger.violate('OWN', `${name} ran twice under epoch ${epoch}`)
    known.starts.set(epoch, who)
    const { scheduler, setup } = this.#ledger
    if (scheduler.nowMs >= known.leasedMs.get(epoch)! + setup.leaseMs)
      this.#ledger.violate('OWN', `${who} starts ${name} e${epoch} after its lease`)
    const runs = [...known.starts.keys()].filter((one) => known.budget.has(one)).length
    const limit = limitOf(letter)
    if (runs > limit || attempt > limit)
      this.#ledger.violate('COUNT', `${name} runs ${runs} times (attempt ${attempt}) of ${limit}`)
  }

  runEnded({ letter, epoch }: Run, how: 'done' | 'failed', afterMs: number): void {
    const inTime = afterMs < this.#ledger.setup.timeoutMs - 0.001
    this.#ledger.incarnationOf(letter)?.ends.set(epoch, inTime ? how : `${how} late`)
  }

  answered(who: string, changes: readonly Change[], results: readonly ApplyResult[]): void {
    for (const [index, { id, guard }] of changes.entries())
      if ('epoch' in guard) this.#of(who, id, guard.epoch).answer = results[index]
  }

  handleEvent(who: string, event: RedriveEvent): void {
    const { coverage, setup } = this.#ledger
    switch (event.type) {
      case 'resolved':
      case 'rescheduled':
      case 'exhausted':
      case 'parked':
      case 'released':
        return this.#handleSettled(who, event)
      case 'lease-lost':
        return this.#handleLost(who, event.letter)
      case 'stuck':
        return coverage.record('handler stuck')
      case 'breaker':
        this.#ledger.log(`${who} breaker of ${event.name} ${event.state}`)
        if (event.state === 'open') {
          this.#openBreakers.add(`${who} ${event.name}`)
          coverage.record('breaker opened')
        } else if (event.state === 'closed' && this.#openBreakers.has(`${who} ${event.name}`))
          coverage.record('breaker closed again')
        return
      case 'error':
        this.#ledger.log(`${who} error during ${event.during}: ${String(event.error)}`)
        this.#failedSettles.add(`${who} ${event.during}`)
        if (event.error instanceof RedriveError && event.error.code === 'QUEUE_FULL') return
        if (!setup.faulty || event.during.startsWith('observer'))
          this.#ledger.violate('UP', `error during ${event.during}: ${String(event.error)}`)
        return
      default:
    }
  }

  /**
   * A worker reports that its result was written. Events about the actions of people are ignored.
   */
  #handleSettled(
    who: string,
    event: Extract<RedriveEvent, { type: keyof typeof settledActions }>,
  ): void {
    const { letter, type } = event
    if (letter.history.at(-1)?.actor !== who) return
    const ledger = this.#ledger
    const known = ledger.incarnationOf(letter)
    const run = `${known?.name} e${letter.epoch}`
    const settle = known?.settles.get(letter.epoch)
    if (settle?.actor !== who || settle.action !== settledActions[type])
      ledger.violate('FENCE', `${who} reports that ${run} is ${type}, but it is not`)
    const report = this.#of(who, letter.id, letter.epoch, known)
    report.settled++
    if (report.answer === 'conflict') ledger.coverage.record('unknown settle found written')
    if (report.settled > 1) ledger.violate('FENCE', `${who} reports twice that ${run} is settled`)
  }

  #handleLost(who: string, letter: DeadLetter): void {
    const ledger = this.#ledger
    const known = ledger.incarnationOf(letter)
    const run = `${known?.name} e${letter.epoch}`
    ledger.log(`${who} lost the lease of ${run}`)
    const report = this.#of(who, letter.id, letter.epoch, known)
    report.lost++
    const settle = known?.settles.get(letter.epoch)
    if (settle?.actor === who)
      ledger.violate(
        'FENCE',
        `${who} reports that ${run} was lost, but its ${settle.action} was accepted`,
      )
    if (report.lost > 1) ledger.violate('FENCE', `${who} reports twice that ${run} was lost`)
  }

  /**
   * After the run: each result was reported once, as settled or lost, and no claim was forgotten.
   */
  finish(isAlive: (who: string) => boolean): void {
    const ledger = this.#ledger
    for (const { who, id, epoch, settled, lost, answer } of this.#reports.values()) {
      if (!isAlive(who) || answer === undefined || this.#hasFailedSettle(who, id)) continue
      // Answers do not identify the incarnation of an id.
      if (ledger.incarnations(id).length > 1) continue
      const name = ledger.nameOf(id)
      if (settled + lost !== 1)
        ledger.violate(
          'FENCE',
          `${who} had ${answer} for ${name} e${epoch}, and reported ${settled} settled, ${lost} lost`,
        )
    }
    for (const { name, letter, answered, starts, settles } of ledger.letters.values())
      for (const [epoch, who] of answered) {
        if (starts.has(epoch) || settles.has(epoch) || !isAlive(who)) continue
        if (this.#of(who, letter.id, epoch).lost === 0 && !this.#hasFailedSettle(who, letter.id))
          ledger.violate(
            'COUNT',
            `${who} was given ${name} e${epoch} and neither ran nor released it`,
          )
      }
  }

  #hasFailedSettle(who: string, id: string): boolean {
    return this.#failedSettles.has(`${who} settling of letter ${id}`)
  }
}
