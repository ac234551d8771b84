import { RedriveError } from '../../src/errors.ts'
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
  started: boolean
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
  readonly #opened = new Set<string>()
  readonly #troubled = new Set<string>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  #of(who: string, id: string, epoch: number): Told {
    const key = `${who} ${this.#ledger.nameOf(id)} ${epoch}`
    let told = this.#told.get(key)
    if (!told) {
      told = { who, id, epoch, started: false, settled: 0, lost: 0, answer: undefined }
      this.#told.set(key, told)
    }
    return told
  }

  started(who: string, { letter, attempt, epoch }: Run): void {
    const known = this.#ledger.of(letter.id)
    this.#ledger.log(`${who} runs ${this.#ledger.nameOf(letter.id)} e${epoch} attempt ${attempt}`)
    if (!known) return this.#ledger.violate('GHOST', `${who} runs a letter that never was`)
    const { name } = known
    if (known.answered.get(epoch) !== who)
      this.#ledger.violate('OWN', `${who} runs ${name} e${epoch}, which it was not given`)
    if (known.starts.has(epoch))
      this.#ledger.violate('OWN', `${name} ran twice under epoch ${epoch}`)
    known.starts.set(epoch, who)
    this.#of(who, letter.id, epoch).started = true
    const runs = [...known.starts.keys()].filter((started) => known.budget.has(started)).length
    const limit = limitOf(letter)
    if (runs > limit || attempt > limit)
      this.#ledger.violate('COUNT', `${name} runs ${runs} times (attempt ${attempt}) of ${limit}`)
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
        return this.#heardLost(who, event.letter.id, event.letter.epoch)
      case 'stuck':
        return sightings.see('handler stuck')
      case 'breaker':
        this.#ledger.log(`${who} breaker of ${event.queue} ${event.state}`)
        if (event.state === 'open') {
          this.#opened.add(`${who} ${event.queue}`)
          sightings.see('breaker opened')
        } else if (event.state === 'closed' && this.#opened.has(`${who} ${event.queue}`))
          sightings.see('breaker closed again')
        return
      case 'trouble':
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
    const { id, epoch, history } = event.letter
    if (history.at(-1)?.actor !== who) return
    const settle = this.#ledger.of(id)?.settles.get(epoch)
    if (settle?.actor !== who || settle.action !== settledActions[event.type])
      this.#ledger.violate(
        'FENCE',
        `${who} says that ${this.#ledger.nameOf(id)} e${epoch} is ${event.type}, and it is not`,
      )
    const told = this.#of(who, id, epoch)
    told.settled++
    if (told.answer === 'conflict') this.#ledger.sightings.see('unknown settle found written')
    if (told.settled > 1)
      this.#ledger.violate(
        'FENCE',
        `${who} says twice that ${this.#ledger.nameOf(id)} e${epoch} is settled`,
      )
  }

  #heardLost(who: string, id: string, epoch: number): void {
    const name = this.#ledger.nameOf(id)
    this.#ledger.log(`${who} lost the lease of ${name} e${epoch}`)
    const told = this.#of(who, id, epoch)
    told.lost++
    const settle = this.#ledger.of(id)?.settles.get(epoch)
    if (settle?.actor === who)
      this.#ledger.violate(
        'FENCE',
        `${who} says that ${name} e${epoch} was lost, and its ${settle.action} was accepted`,
      )
    if (told.lost > 1)
      this.#ledger.violate('FENCE', `${who} was told twice that ${name} e${epoch} was lost`)
  }

  /** After the run: each result was told once, one way or the other. */
  finish(isAlive: (who: string) => boolean): void {
    for (const { who, id, epoch, settled, lost, answer } of this.#told.values()) {
      if (
        !isAlive(who) ||
        answer === undefined ||
        this.#troubled.has(`${who} settling of letter ${id}`)
      )
        continue
      if (settled + lost !== 1)
        this.#ledger.violate(
          'FENCE',
          `${who} had ${answer} for ${this.#ledger.nameOf(id)} e${epoch}, and told ${settled} settled, ${lost} lost`,
        )
    }
  }
}
