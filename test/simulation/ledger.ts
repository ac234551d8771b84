import { isDeepStrictEqual } from 'node:util'
import {
  states,
  type CountedAction,
  type DeadLetter,
  type Payload,
} from '../../src/letter/letter.ts'
import { countsOfCapture } from '../../src/letter/counts.ts'
import type { Store, Total } from '../../src/store.ts'
import { isDone, ExpectedLetters, type ExpectedLetter } from './expected-letters.ts'
import type { Setup } from './settings.ts'
import type { Coverage } from './coverage.ts'
import type { Scheduler } from './scheduler.ts'

export interface LedgerOptions {
  scheduler: Scheduler
  setup: Setup
  shared: Store
  coverage: Coverage
  /** The clock of the shared store. */
  storeNowMs: () => number
}

/** Fields that change during a run. The others are compared once, after the run. */
const changingFields = [
  'version',
  'state',
  'epoch',
  'retries',
  'retryAt',
  'backoffMs',
  'reason',
  'settledAt',
  'occurrences',
  'priority',
  'updatedAt',
] as const

/** The expected content of the store, from all observed calls. */
export class Ledger {
  readonly letters = new ExpectedLetters()
  /** Removed or evicted letters in their last state. */
  readonly gone = new Map<string, ExpectedLetter>()
  readonly totals = new Map<string, Total>()
  readonly scheduler: Scheduler
  readonly setup: Setup
  readonly coverage: Coverage
  readonly storeNowMs: () => number
  readonly #shared: Store
  /** Removed letters whose id was captured again. */
  readonly #past = new Map<string, ExpectedLetter[]>()

  constructor(options: LedgerOptions) {
    this.scheduler = options.scheduler
    this.setup = options.setup
    this.coverage = options.coverage
    this.storeNowMs = options.storeNowMs
    this.#shared = options.shared
  }

  /** The letter, also after its removal. */
  of(id: string): ExpectedLetter | undefined {
    return this.letters.get(id) ?? this.gone.get(id)
  }

  /** All letters that have had this id, in order: a removed one may be captured again. */
  incarnations(id: string): ExpectedLetter[] {
    const known = this.of(id)
    return [...(this.#past.get(id) ?? []), ...(known ? [known] : [])]
  }

  /** The incarnation that this letter is a copy of. */
  incarnationOf({ id, deadLetteredAt }: DeadLetter): ExpectedLetter | undefined {
    return this.incarnations(id).findLast(({ letter }) => letter.deadLetteredAt === deadLetteredAt)
  }

  /** Adds a new letter, or one that was removed before. */
  begin(known: ExpectedLetter): void {
    const { id } = known.letter
    const before = this.gone.get(id)
    if (before) this.#past.set(id, [...(this.#past.get(id) ?? []), before])
    this.gone.delete(id)
    this.letters.set(id, known)
    for (const action of countsOfCapture(known.letter.state)) this.count(action, known.letter)
  }

  nameOf(id: string): string {
    return this.of(id)?.name ?? id.slice(-6)
  }

  log(text: string): void {
    this.scheduler.log(text)
  }

  violate(invariant: string, what: string): void {
    this.scheduler.violate(invariant, what)
  }

  /** Updates the lifetime totals. */
  count(action: CountedAction, { queue, priority, retries, backoffMs }: DeadLetter): void {
    const key = `${action} ${queue} ${priority}`
    const none = { action, queue, priority, count: 0, retries: 0, maxRetries: 0, backoffMs: 0 }
    const total = this.totals.get(key) ?? none
    total.count++
    total.retries += retries
    total.maxRetries = Math.max(total.maxRetries, retries)
    total.backoffMs += backoffMs
    this.totals.set(key, total)
  }

  drop(known: ExpectedLetter, action: 'remove' | 'evict'): void {
    this.letters.delete(known.letter.id)
    this.gone.set(known.letter.id, known)
    this.count(action, known.letter)
  }

  /** Releases the letters that wait for this one, if it is resolved. */
  freeDependents({ letter }: ExpectedLetter): void {
    if (!isDone(letter)) return
    for (const { waitsFor } of this.letters.values()) waitsFor.delete(letter.id)
  }

  /** Expected letters that the store does not have. */
  async findMissing(): Promise<ExpectedLetter[]> {
    const { items } = await this.#shared.find({ state: [...states], limit: 1000 })
    const there = new Set(items.map(({ id }) => id))
    return [...this.letters.values()].filter(({ letter }) => !there.has(letter.id))
  }

  /** Compares the letters of the store with the expected ones. */
  async compare(ids: readonly string[]): Promise<void> {
    for (const id of new Set(ids)) {
      const known = this.letters.get(id)
      if (!known) continue
      const [now] = await this.#shared.get([id])
      if (now) this.#expectSameFields(known, now)
      else this.violate('LOSS', `${known.name} is not in the store`)
    }
  }

  #expectSameFields({ letter, name }: ExpectedLetter, now: DeadLetter): void {
    for (const key of changingFields)
      if (now[key] !== letter[key])
        this.violate('CONS', `${key} of ${name} is ${now[key]} instead of ${letter[key]}`)
    const [lease, expected] = [now.lease, letter.lease]
    if (lease?.epoch !== expected?.epoch || lease?.expiresAt !== expected?.expiresAt)
      this.violate(
        'CONS',
        `the lease of ${name} is ${formatValue(lease)} instead of ${formatValue(expected)}`,
      )
    const [history, lines] = [now.history, letter.history]
    if (history.length !== lines.length || history.at(-1)?.action !== lines.at(-1)?.action)
      this.violate('CONS', `the history of ${name} is not what happened`)
  }

  /** All fields must be equal. */
  expectSameLetter({ letter, name }: ExpectedLetter, now: DeadLetter): void {
    for (const key of Object.keys({ ...now, ...letter }) as (keyof DeadLetter)[]) {
      const [is, expected] =
        key === 'payload' ? [toPlain(now[key]), toPlain(letter[key])] : [now[key], letter[key]]
      if (!isDeepStrictEqual(is, expected))
        this.violate(
          'CONS',
          `${key} of ${name} is ${formatValue(is)} instead of ${formatValue(expected)}`,
        )
    }
  }

  expectSameLength(
    verb: string,
    requested: readonly unknown[],
    answered: readonly unknown[],
  ): void {
    if (requested.length !== answered.length)
      this.violate('CONS', `${verb} of ${requested.length} has ${answered.length} answers`)
  }
}

function toPlain(payload: Payload): unknown {
  return { ...payload, bytes: textOf(payload.bytes) }
}

function formatValue(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value).slice(0, 200)
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
