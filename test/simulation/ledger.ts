import { isDeepStrictEqual } from 'node:util'
import {
  states,
  type CountedAction,
  type DeadLetter,
  type Payload,
} from '../../src/letter/letter.ts'
import { countsOfCapture } from '../../src/letter/moves.ts'
import type { Store, Total } from '../../src/store.ts'
import { isDone, Letters, type Known } from './known.ts'
import type { Setup } from './settings.ts'
import type { Sightings } from './sightings.ts'
import type { World } from './world.ts'

export interface LedgerOptions {
  world: World
  setup: Setup
  shared: Store
  sightings: Sightings
  /** The clock that the shared store goes by. */
  storeNowMs: () => number
}

/** What changes as a letter goes on. The rest is compared once, after the run. */
const standing = [
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

/** What must be in the store, by all that was seen to happen to it. */
export class Ledger {
  readonly letters = new Letters()
  /** Letters that were removed or evicted, as they last were. */
  readonly gone = new Map<string, Known>()
  readonly totals = new Map<string, Total>()
  readonly world: World
  readonly setup: Setup
  readonly sightings: Sightings
  readonly storeNowMs: () => number
  readonly #shared: Store
  /** Letters whose id was captured again after they had gone. */
  readonly #past = new Map<string, Known[]>()

  constructor(options: LedgerOptions) {
    this.world = options.world
    this.setup = options.setup
    this.sightings = options.sightings
    this.storeNowMs = options.storeNowMs
    this.#shared = options.shared
  }

  /** The letter, also when it is gone. */
  of(id: string): Known | undefined {
    return this.letters.get(id) ?? this.gone.get(id)
  }

  /** The letters that have had this id, one after the other: a removed one may be captured again. */
  lives(id: string): Known[] {
    const known = this.of(id)
    return [...(this.#past.get(id) ?? []), ...(known ? [known] : [])]
  }

  /** Which of them this is a copy of. */
  lifeOf({ id, deadLetteredAt }: DeadLetter): Known | undefined {
    return this.lives(id).findLast(({ letter }) => letter.deadLetteredAt === deadLetteredAt)
  }

  /** A letter that was not there, or not any more, is there now. */
  begin(known: Known): void {
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
    this.world.log(text)
  }

  violate(invariant: string, what: string): void {
    this.world.violate(invariant, what)
  }

  /** For the lifetime totals. */
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

  drop(known: Known, action: 'remove' | 'evict'): void {
    this.letters.delete(known.letter.id)
    this.gone.set(known.letter.id, known)
    this.count(action, known.letter)
  }

  /** Who waited for this letter no longer does, if it is resolved. */
  freeDependents({ letter }: Known): void {
    if (!isDone(letter)) return
    for (const { waitsFor } of this.letters.values()) waitsFor.delete(letter.id)
  }

  /** Letters that the store no longer has. */
  async vanished(): Promise<Known[]> {
    const { items } = await this.#shared.find({ state: [...states], limit: 1000 })
    const there = new Set(items.map(({ id }) => id))
    return [...this.letters.values()].filter(({ letter }) => !there.has(letter.id))
  }

  /** Holds what the store has now against what it must have. */
  async compare(ids: readonly string[]): Promise<void> {
    for (const id of new Set(ids)) {
      const known = this.letters.get(id)
      if (!known) continue
      const [now] = await this.#shared.get([id])
      if (now) this.#sameStanding(known, now)
      else this.violate('LOSS', `${known.name} is not in the store`)
    }
  }

  #sameStanding({ letter, name }: Known, now: DeadLetter): void {
    for (const key of standing)
      if (now[key] !== letter[key])
        this.violate('CONS', `${key} of ${name} is ${now[key]} instead of ${letter[key]}`)
    const [lease, must] = [now.lease, letter.lease]
    if (lease?.epoch !== must?.epoch || lease?.expiresAt !== must?.expiresAt)
      this.violate('CONS', `the lease of ${name} is ${told(lease)} instead of ${told(must)}`)
    const [history, lines] = [now.history, letter.history]
    if (history.length !== lines.length || history.at(-1)?.action !== lines.at(-1)?.action)
      this.violate('CONS', `the history of ${name} is not what happened`)
  }

  /** Equal in everything. */
  sameLetter({ letter, name }: Known, now: DeadLetter): void {
    for (const key of Object.keys({ ...now, ...letter }) as (keyof DeadLetter)[]) {
      const [is, must] =
        key === 'payload' ? [plain(now[key]), plain(letter[key])] : [now[key], letter[key]]
      if (!isDeepStrictEqual(is, must))
        this.violate('CONS', `${key} of ${name} is ${told(is)} instead of ${told(must)}`)
    }
  }

  sameLength(verb: string, asked: readonly unknown[], answered: readonly unknown[]): void {
    if (asked.length !== answered.length)
      this.violate('CONS', `${verb} of ${asked.length} has ${answered.length} answers`)
  }
}

function plain(payload: Payload): unknown {
  return { ...payload, bytes: textOf(payload.bytes) }
}

function told(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value).slice(0, 200)
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
