import { isOpen, type DeadLetter } from '../../src/letter/letter.ts'
import { occur } from '../../src/letter/moves.ts'
import type { AddResult, Capacity } from '../../src/store.ts'
import { isDone, type ExpectedLetter } from './expected-letters.ts'
import { textOf, type Ledger } from './ledger.ts'

/** Checks additions: no acknowledged letter is lost, none is invented, none is added twice. */
export class Additions {
  readonly acknowledged = new Set<string>()
  readonly #ledger: Ledger
  readonly #tried = new Set<string>()
  /** Ids by captured bytes: a repeated capture creates no second letter. */
  readonly #idByBytes = new Map<string, string>()
  #names = 0

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** Registers bytes that are about to be captured. */
  captureTried(bytes: Uint8Array): void {
    this.#tried.add(textOf(bytes))
  }

  /** A capture was acknowledged. Without bytes it may be an occurrence of a letter with others. */
  acknowledge(text: string | undefined, id = this.#idByBytes.get(text ?? '')): void {
    const ledger = this.#ledger
    const known = id === undefined ? undefined : ledger.of(id)
    if (!known) return ledger.violate('LOSS', 'an acknowledged capture is not in the store')
    ledger.log(`capture of ${known.name} is acknowledged`)
    if (text !== undefined && this.#idByBytes.get(text) !== known.letter.id)
      ledger.violate('LOSS', `${known.name} has other bytes than were captured`)
    this.acknowledged.add(known.letter.id)
  }

  /** Whether another capture has, or had, this id. */
  isTaken(id: string, text: string | undefined): boolean {
    return [...this.#idByBytes].some(([other, taken]) => taken === id && other !== text)
  }

  checkCaptured(letters: readonly DeadLetter[]): void {
    for (const { payload, queue } of letters)
      if (!this.#tried.has(textOf(payload.bytes)))
        this.#ledger.violate('GHOST', `a letter of ${queue} that was never captured`)
  }

  async added(
    by: string,
    letters: readonly DeadLetter[],
    capacity: Capacity | undefined,
    results: AddResult[],
  ): Promise<void> {
    const ledger = this.#ledger
    ledger.expectSameLength('add', letters, results)
    const evictions = results.map((result) => (result.kind === 'added' ? (result.evicted ?? 0) : 0))
    const evicted = evictions.reduce((sum, count) => sum + count, 0)
    // The letters that were resolved first are evicted first.
    const missing = evicted > 0 ? (await ledger.findMissing()).sort(bySettling) : []
    if (missing.length !== evicted)
      ledger.violate('LOSS', `${evicted} evicted, and ${missing.length} letters are missing`)
    for (const [index, letter] of letters.entries()) {
      const result = results[index]!
      for (const known of missing.splice(0, evictions[index])) this.#evict(known)
      if (result.kind === 'added') this.#add(by, letter, capacity)
      else if (result.kind === 'full') this.#full(by, letter, capacity)
      else this.#duplicate(by, letter, result)
    }
    const held = results.flatMap((result) => (result.kind === 'duplicate' ? result.of : []))
    await ledger.compare([...letters.map(({ id }) => id), ...held])
  }

  #add(by: string, letter: DeadLetter, capacity: Capacity | undefined): void {
    const ledger = this.#ledger
    const { id, queue, state, lane, version, payload, dependsOn = [] } = letter
    const name = `#${++this.#names}`
    const after =
      dependsOn.length > 0
        ? ` after ${dependsOn.map((other) => ledger.nameOf(other)).join(', ')}`
        : ''
    ledger.log(`${by} add ${name} ${queue} ${state}${lane ? ` lane ${lane}` : ''}${after}`)
    if (ledger.letters.has(id)) ledger.violate('LOSS', `${name} replaced ${ledger.nameOf(id)}`)
    const holder = this.#holderOf(letter)
    if (holder) ledger.violate('DEDUPE', `${name} was added while ${holder.name} holds its key`)
    const countOccupied = ledger.letters.countOccupied()
    if (capacity && countOccupied >= capacity.maxItems)
      ledger.violate(
        'CONS',
        `${name} was added to ${countOccupied} letters of ${capacity.maxItems}`,
      )
    this.#rememberBytes(name, letter)
    const isUnmet = (other: string): boolean => {
      const dependency = ledger.letters.get(other)
      return !dependency || !isDone(dependency.letter)
    }
    const known: ExpectedLetter = {
      name,
      letter,
      bytes: Uint8Array.from(payload.bytes),
      counted: 0,
      budget: new Set(),
      leasedMs: new Map(),
      starts: new Map(),
      ends: new Map(),
      answered: new Map(),
      settles: new Map(),
      versions: new Map([[version, 'capture']]),
      waitsFor: new Set(dependsOn.filter(isUnmet)),
    }
    ledger.begin(known)
  }

  #rememberBytes(name: string, { id, payload }: DeadLetter): void {
    const text = textOf(payload.bytes)
    const other = this.#idByBytes.get(text)
    if (other !== undefined && other !== id)
      this.#ledger.violate(
        'GHOST',
        `${name} and ${this.#ledger.nameOf(other)} have the same capture`,
      )
    this.#idByBytes.set(text, id)
  }

  #evict(known: ExpectedLetter): void {
    const { name, letter } = known
    this.#ledger.log(`store evicts ${name}`)
    if (letter.state !== 'resolved')
      this.#ledger.violate('LOSS', `${name} was evicted while ${letter.state}`)
    this.#ledger.coverage.record('resolved letter evicted')
    this.#ledger.drop(known, 'evict')
  }

  #full(by: string, letter: DeadLetter, capacity: Capacity | undefined): void {
    const { letters, coverage } = this.#ledger
    this.#ledger.log(`${by} add of ${letter.queue}: full`)
    coverage.record('queue full')
    const evicts = capacity?.overflow === 'evict-resolved'
    const evictable = evicts ? letters.count(({ state }) => state === 'resolved') : 0
    const excess = letters.countOccupied() + 1 - (capacity?.maxItems ?? Infinity)
    if (excess <= 0 || evictable >= excess)
      this.#ledger.violate('CONS', 'a letter was refused although there is room')
  }

  #duplicate(
    by: string,
    letter: DeadLetter,
    result: Extract<AddResult, { kind: 'duplicate' }>,
  ): void {
    const ledger = this.#ledger
    const known = ledger.letters.get(result.of)
    ledger.log(`${by} add is a duplicate of ${ledger.nameOf(result.of)} by ${result.by}`)
    if (!known) return ledger.violate('LOSS', `a duplicate of ${result.of}, which does not exist`)
    if (result.by === 'id') {
      ledger.coverage.record('same id captured again')
      if (letter.id !== result.of)
        ledger.violate('DEDUPE', `${known.name} was matched to another id`)
      return
    }
    ledger.coverage.record('dedupe hit')
    const before = known.letter
    if (
      before.dedupeKey !== letter.dedupeKey ||
      before.queue !== letter.queue ||
      !isOpen(before.state)
    )
      ledger.violate('DEDUPE', `${known.name} does not hold that key, or is ${before.state}`)
    const now = occur(before, letter)
    if (result.occurrences !== now.occurrences)
      ledger.violate(
        'DEDUPE',
        `${known.name} has ${result.occurrences} occurrences of ${now.occurrences}`,
      )
    known.letter = now
    known.versions.set(now.version, 'occur')
    ledger.count('occur', now)
  }

  #holderOf({ queue, dedupeKey }: DeadLetter): ExpectedLetter | undefined {
    if (dedupeKey === undefined) return undefined
    const holds = ({ letter }: ExpectedLetter): boolean =>
      letter.queue === queue && letter.dedupeKey === dedupeKey && isOpen(letter.state)
    return [...this.#ledger.letters.values()].find(holds)
  }
}

function bySettling(a: ExpectedLetter, b: ExpectedLetter): number {
  const [one, other] = [a, b].map(({ letter }) => `${letter.settledAt} ${letter.id}`)
  return one! < other! ? -1 : 1
}
