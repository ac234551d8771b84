import { RedriveError } from '../../src/errors.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { Change } from '../../src/letter/moves.ts'
import type { RedriveEvent } from '../../src/observer.ts'
import type { Run } from '../../src/redelivery/run.ts'
import type { ApplyResult } from '../../src/store.ts'
import { limitOf } from './known.ts'
import type { Ledger } from './ledger.ts'

/** What one process was told and said about one run, that is one epoch of one letter. */
interface Told {
  who: string
  id: string
  epoch: number
  /** Observers heard that it was settled. */
  settled: number
  /** Observers heard that its lease was lost. */
  lost: number
  /** The store's last answer to its result. */
  answer: ApplyResult | undefined
}

const settledActions = {
  resolved: 'resolve',
  rescheduled: 'reschedule',
  exhausted: 'exhaust',
  parked: 'park',
  released: 'release',
} as const

/** Watches the processes from within: which handlers run, and what observers hear. */
export class Witness {
  readonly #ledger: Ledger
  readonly #told = new Map<string, Told>()
  /** What the last claim of each process gave it. */
  readonly #given = new Map<string, DeadLetter[]>()
  /** Runs, as process, id and epoch, that were begun, or whose result was on its way without. */
  readonly #begun = new Set<string>()
  readonly #opened = new Set<string>()
  readonly #troubled = new Set<string>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  #of(who: string, id: string, epoch: number, known = this.#ledger.of(id)): Told {
    const key = `${who} ${known?.name ?? id} ${epoch}`
    let told = this.#told.get(key)
    if (!told) {
      told = { who, id, epoch, settled: 0, lost: 0, answer: undefined }
      this.#told.set(key, told)
    }
    return told
  }

  /** A process has heard what it claimed, and by the next time it must have begun with all of it. */
  given(who: string, letters: DeadLetter[]): void {
    for (const { id, epoch } of this.#given.get(who) ?? [])
      if (!this.#begun.has(`${who} ${id} ${epoch}`))
        this.#ledger.violate(
          'COUNT',
          `${who} was given ${this.#ledger.nameOf(id)} e${epoch} and did not begin with it`,
        )
    this.#given.set(who, letters)
  }

  settling(who: string, changes: readonly Change[]): void {
    for (const { id, guard } of changes)
      if ('epoch' in guard) this.#begun.add(`${who} ${id} ${guard.epoch}`)
  }

  started(who: string, { letter, attempt, epoch }: Run): void {
    this.#begun.add(`${who} ${letter.id} ${epoch}`)
    const known = this.#ledger.lifeOf(letter)
    this.#ledger.log(`${who} runs ${known?.name} e${epoch} attempt ${attempt}`)
    if (!known) return this.#ledger.violate('GHOST', `${who} runs a letter that never was`)
    const { name } = known
    if (known.answered.get(epoch) !== who)
      this.#ledger.violate('OWN', `${who} runs ${name} e${epoch}, which it was not given`)
    if (known.starts.has(epoch))
      this.#ledger.violate('OWN', `${name} ran twice under epoch ${epoch}`)
    known.starts.set(epoch, who)
    const { world, setup } = this.#ledger
    if (world.nowMs >= known.claims.get(epoch)! + setup.leaseMs)
      this.#ledger.violate('OWN', `${who} begins to run ${name} e${epoch} after its lease`)
    const runs = [...known.starts.keys()].filter((started) => known.budget.has(started)).length
    const limit = limitOf(letter)
    if (runs > limit || attempt > limit)
      this.#ledger.violate('COUNT', `${name} runs ${runs} times (attempt ${attempt}) of ${limit}`)
  }

  ended({ letter, epoch }: Run, how: 'done' | 'failed', afterMs: number): void {
    const inTime = afterMs < this.#ledger.setup.timeoutMs - 0.001
    this.#ledger.lifeOf(letter)?.ends.set(epoch, inTime ? how : `${how} late`)
  }

  answered(who: string, changes: readonly Change[], results: readonly ApplyResult[]): void {
    for (const [index, { id, guard }] of changes.entries())
      if ('epoch' in guard) this.#of(who, id, guard.epoch).answer = results[index]
  }

  heard(who: string, event: RedriveEvent): void {
    const { sightings, setup } = this.#ledger
    switch (event.type) {
      case 'resolved':
      case 'rescheduled':
      case 'exhausted':
      case 'parked':
      case 'released':
        return this.#heardSettled(who, event)
      case 'lease-lost':
        return this.#heardLost(who, event.letter)
      case 'stuck':
        return sightings.see('handler stuck')
      case 'breaker':
        this.#ledger.log(`${who} breaker of ${event.name} ${event.state}`)
        if (event.state === 'open') {
          this.#opened.add(`${who} ${event.name}`)
          sightings.see('breaker opened')
        } else if (event.state === 'closed' && this.#opened.has(`${who} ${event.name}`))
          sightings.see('breaker closed again')
        return
      case 'error':
        this.#ledger.log(`${who} trouble during ${event.during}: ${String(event.error)}`)
        this.#troubled.add(`${who} ${event.during}`)
        if (event.error instanceof RedriveError && event.error.code === 'QUEUE_FULL') return
        if (!setup.faulty || event.during.startsWith('observer'))
          this.#ledger.violate('UP', `trouble during ${event.during}: ${String(event.error)}`)
        return
      default:
    }
  }

  /** A worker says that its result was written. What people did is told the same way, and is not looked at here. */
  #heardSettled(
    who: string,
    event: Extract<RedriveEvent, { type: keyof typeof settledActions }>,
  ): void {
    const { letter, type } = event
    if (letter.history.at(-1)?.actor !== who) return
    const ledger = this.#ledger
    const known = ledger.lifeOf(letter)
    const run = `${known?.name} e${letter.epoch}`
    const settle = known?.settles.get(letter.epoch)
    if (settle?.actor !== who || settle.action !== settledActions[type])
      ledger.violate('FENCE', `${who} says that ${run} is ${type}, and it is not`)
    const told = this.#of(who, letter.id, letter.epoch, known)
    told.settled++
    if (told.answer === 'conflict') ledger.sightings.see('unknown settle found written')
    if (told.settled > 1) ledger.violate('FENCE', `${who} says twice that ${run} is settled`)
  }

  #heardLost(who: string, letter: DeadLetter): void {
    const ledger = this.#ledger
    const known = ledger.lifeOf(letter)
    const run = `${known?.name} e${letter.epoch}`
    ledger.log(`${who} lost the lease of ${run}`)
    const told = this.#of(who, letter.id, letter.epoch, known)
    told.lost++
    const settle = known?.settles.get(letter.epoch)
    if (settle?.actor === who)
      ledger.violate(
        'FENCE',
        `${who} says that ${run} was lost, and its ${settle.action} was accepted`,
      )
    if (told.lost > 1) ledger.violate('FENCE', `${who} was told twice that ${run} was lost`)
  }

  /** After the run: each result was told once, one way or the other, and no claim was forgotten. */
  finish(isAlive: (who: string) => boolean): void {
    const ledger = this.#ledger
    for (const { who, id, epoch, settled, lost, answer } of this.#told.values()) {
      if (!isAlive(who) || answer === undefined || this.#hadTrouble(who, id)) continue
      // Answers do not say which life of an id they are about.
      if (ledger.lives(id).length > 1) continue
      const name = ledger.nameOf(id)
      if (settled + lost !== 1)
        ledger.violate(
          'FENCE',
          `${who} had ${answer} for ${name} e${epoch}, and told ${settled} settled, ${lost} lost`,
        )
    }
    for (const { name, letter, answered, starts, settles } of ledger.letters.values())
      for (const [epoch, who] of answered) {
        if (starts.has(epoch) || settles.has(epoch) || !isAlive(who)) continue
        if (this.#of(who, letter.id, epoch).lost === 0 && !this.#hadTrouble(who, letter.id))
          ledger.violate(
            'COUNT',
            `${who} was given ${name} e${epoch} and neither ran it nor gave it back`,
          )
      }
  }

  #hadTrouble(who: string, id: string): boolean {
    return this.#troubled.has(`${who} settling of letter ${id}`)
  }
}
