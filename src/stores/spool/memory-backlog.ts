import { copyOf } from '../../letter/copy.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { fullError, type Backlog, type Emit, type Entry } from './backlog.ts'
import type { Refusal, SetAside } from './backlog.ts'

/** Estimated size of a letter without its payload. */
const letterBytes = 2048

/**
 * Letters that wait in memory only (`onStoreDown: 'memory'`). They are lost when the process ends.
 */
export class MemoryBacklog implements Backlog {
  readonly place = 'memory'
  readonly #maxBytes: number
  readonly #emit: Emit
  readonly #entries: Entry[] = []
  #bytes = 0
  #refused = 0

  constructor(maxBytes: number, emit: Emit) {
    this.#maxBytes = maxBytes
    this.#emit = emit
  }

  get letters(): number {
    return this.#entries.length
  }

  get bytes(): number {
    return this.#bytes
  }

  get oldestAt(): string | undefined {
    return this.#entries[0]?.letter.deadLetteredAt
  }

  get empty(): boolean {
    return this.#entries.length === 0
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {
    if (this.empty) return
    const error = new Error(`${this.letters} letters waited in memory only and are lost`)
    this.#emit({ type: 'error', during: 'closing the spool', error })
  }

  async append(letters: readonly DeadLetter[]): Promise<void> {
    const bytes = letters.reduce((sum, letter) => sum + sizeOf(letter), 0)
    if (this.#bytes + bytes > this.#maxBytes) throw fullError(this.place, this.#maxBytes)
    for (const letter of letters) this.#entries.push({ letter: copyOf(letter), file: '', seq: 0 })
    this.#bytes += bytes
  }

  async head(limit: number): Promise<Entry[]> {
    return this.#entries.slice(0, limit)
  }

  async settle(entries: readonly Entry[], refused: readonly Refusal[]): Promise<void> {
    for (const { entry, why } of refused) {
      const file = `letter ${entry.letter.id} in memory`
      this.#emit({ type: 'set-aside', what: 'refused', file, why })
    }
    this.#refused += refused.length
    this.#entries.splice(0, entries.length)
    for (const { letter } of entries) this.#bytes -= sizeOf(letter)
  }

  async countSetAside(): Promise<SetAside> {
    return { damaged: 0, refused: this.#refused, unreadable: 0 }
  }
}

function sizeOf({ payload }: DeadLetter): number {
  return payload.bytes.byteLength + letterBytes
}
