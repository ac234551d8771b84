import { RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Aside, Backlog, Entry, Tell } from './backlog.ts'

/** What a letter takes beside its payload, about. */
const letterBytes = 2048

/** Letters that wait in memory only, for those who choose it over being refused. They are lost with the process. */
export function inMemory(maxBytes: number, tell: Tell): Backlog {
  return new InMemory(maxBytes, tell)
}

class InMemory implements Backlog {
  readonly place = 'memory'
  readonly #maxBytes: number
  readonly #tell: Tell
  readonly #entries: Entry[] = []
  readonly #refused: DeadLetter[] = []
  #bytes = 0

  constructor(maxBytes: number, tell: Tell) {
    this.#maxBytes = maxBytes
    this.#tell = tell
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
    const error = `${this.letters} letters waited in memory only, and are lost`
    this.#tell({ type: 'error', during: 'closing the spool', error })
  }

  async append(letters: readonly DeadLetter[]): Promise<void> {
    const bytes = letters.reduce((sum, letter) => sum + sizeOf(letter), 0)
    if (this.#bytes + bytes > this.#maxBytes)
      throw new RedriveError(
        'STORE_UNAVAILABLE',
        `the spool in memory is full (spoolMaxBytes is ${this.#maxBytes}): nothing more is taken until the store is back`,
      )
    const copies = letters.map((letter) => structuredClone(letter))
    this.#bytes += bytes
    for (const letter of copies) this.#entries.push({ letter, start: 0, end: 0 })
  }

  async head(): Promise<readonly Entry[] | undefined> {
    return this.empty ? undefined : this.#entries
  }

  async settle(count: number): Promise<void> {
    for (const { letter } of this.#entries.splice(0, count)) this.#bytes -= sizeOf(letter)
  }

  async refuse({ letter }: Entry, why: string): Promise<void> {
    this.#refused.push(letter)
    this.#tell({ type: 'set-aside', what: 'refused', file: `letter ${letter.id} in memory`, why })
  }

  async aside(): Promise<Aside> {
    return { torn: 0, damaged: 0, refused: this.#refused.length, unreadable: 0 }
  }
}

function sizeOf({ payload }: DeadLetter): number {
  return payload.bytes.byteLength + letterBytes
}
