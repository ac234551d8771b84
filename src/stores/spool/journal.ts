import { resolve } from 'node:path'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { letterToJson } from '../../letter/schema.ts'
import type { Timestamp } from '../../letter/time.ts'
import type { Aside, AsideKind, Backlog, Entry, Tell } from './backlog.ts'
import { asideFile, asideIn, checkRoom, dropFolder, makeFolder, writeAside } from './folder.ts'
import { writeCursor, type Segment } from './leftovers.ts'
import { Row } from './row.ts'
import {
  isForeign,
  readSegment,
  recordsOf,
  refusal,
  SegmentWriter,
  type Contents,
} from './segment.ts'

export interface JournalOptions {
  path: string
  maxBytes: number
  clock: Clock
  tell: Tell
}

/** A segment is closed at this size, and read whole when its turn comes. */
const segmentBytes = 4 * 2 ** 20

/** How often a segment is tried that cannot be read, before it is left for the next open. With a drain's waits, a minute or so. */
const maxFailures = 8

interface Gathered {
  letters: readonly DeadLetter[]
  records: Buffer
  resolve: () => void
  reject: (error: unknown) => void
}

/**
 * Letters on disk. Every process writes a journal of its own, in segments, and holds a lock on it; a journal that
 * nobody holds is one whose process is gone, and is taken over by the next one to open the folder. While one flush is
 * on its way, letters gather for the next. Only what is closed is read.
 */
export function journal(options: JournalOptions): Backlog {
  return new Journal(options)
}

class Journal implements Backlog {
  readonly place: string
  readonly #options: JournalOptions
  readonly #row: Row
  /** Whether the folder is ours to take away again. */
  #made = false
  /** The segment that is written to. */
  #open: { writer: SegmentWriter; segment: Segment } | undefined
  #gathered: Gathered[] = []
  /** Letters and bytes that are on their way in. */
  #coming = { letters: 0, bytes: 0 }
  #head: { segment: Segment; entries: Entry[] } | undefined
  /** The end of the last thing done to the files: one at a time. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(options: JournalOptions) {
    this.#options = options
    this.place = resolve(options.path)
    this.#row = new Row(this.place)
  }

  get letters(): number {
    return this.#row.letters
  }

  get bytes(): number {
    return this.#row.bytes
  }

  get oldestAt(): Timestamp | undefined {
    return this.#row.oldestAt
  }

  get empty(): boolean {
    return this.#row.empty && this.#coming.letters === 0
  }

  async open(): Promise<void> {
    try {
      this.#made = await makeFolder(this.place)
      const unreadable = await this.#inTurn(() => this.#row.takeOver())
      for (const { path, error } of unreadable) this.#complain(path, error)
    } catch (cause) {
      this.#row.release()
      throw new RedriveError(
        'INVALID_CONFIG',
        `no spool can be kept in ${this.place} (${(cause as Error).message}): set spoolPath to a folder that can be written to, or onStoreDown to 'fail'`,
        { cause },
      )
    }
  }

  async close(): Promise<void> {
    await this.#inTurn(async () => {
      await this.#seal()
      this.#row.release()
      if (this.#made) await dropFolder(this.place)
    })
  }

  async append(letters: readonly DeadLetter[]): Promise<void> {
    if (letters.length === 0) return
    const records = writable(letters)
    const { maxBytes } = this.#options
    if (this.bytes + this.#coming.bytes + records.length > maxBytes)
      throw new RedriveError(
        'STORE_UNAVAILABLE',
        `the spool ${this.place} is full (spoolMaxBytes is ${maxBytes}): nothing more is taken until the store is back`,
      )
    this.#coming.letters += letters.length
    this.#coming.bytes += records.length
    try {
      await new Promise<void>((resolve, reject) => {
        this.#gathered.push({ letters, records, resolve, reject })
        if (this.#gathered.length === 1) void this.#inTurn(() => this.#write())
      })
    } finally {
      this.#coming.letters -= letters.length
      this.#coming.bytes -= records.length
    }
  }

  /** Writes and flushes all that has gathered. Never rejects: those who wait for it hear. */
  async #write(): Promise<void> {
    const group = this.#gathered
    this.#gathered = []
    const records = Buffer.concat(group.map((one) => one.records))
    try {
      // Another process may have taken the folder away, as long as nothing was in it.
      if (!this.#open) await makeFolder(this.place)
      await checkRoom(this.place, records.length)
      const { writer, segment } = (this.#open ??= await this.#begin())
      await writer.write(records)
      const letters = group.flatMap((one) => one.letters)
      segment.bytes = writer.bytes
      segment.letters += letters.length
      segment.oldestAt ??= letters[0]!.deadLetteredAt
      for (const { resolve } of group) resolve()
      if (writer.bytes >= segmentBytes) await this.#seal()
    } catch (error) {
      await this.#abandon()
      for (const { reject } of group) reject(this.#unwritable(error))
    }
  }

  async #begin(): Promise<{ writer: SegmentWriter; segment: Segment }> {
    const next = this.#row.next(() => this.#options.clock.id())
    const writer = await SegmentWriter.create(next.path)
    const segment = { ...next, bytes: writer.bytes }
    this.#row.push(segment)
    return { writer, segment }
  }

  /** Ends the segment that is written to, so that it may be read. */
  async #seal(): Promise<void> {
    const open = this.#open
    this.#open = undefined
    await open?.writer.close().catch(() => {})
  }

  /** A segment that could not be written to is written to no more. */
  async #abandon(): Promise<void> {
    const segment = this.#open?.segment
    await this.#seal()
    await (segment?.letters === 0 ? this.#row.drop(segment) : this.#row.tidy()).catch(() => {})
  }

  #unwritable(cause: unknown): RedriveError {
    if (cause instanceof RedriveError) return cause
    return new RedriveError(
      'STORE_UNAVAILABLE',
      `the spool ${this.place} cannot be written to: ${(cause as Error).message}`,
      { cause },
    )
  }

  async head(): Promise<readonly Entry[] | undefined> {
    if (!this.#head) await this.#inTurn(() => this.#load())
    return this.#head?.entries
  }

  /** Opens the oldest segment that has letters. What has none is cleared away, once what is odd in it lies aside. */
  async #load(): Promise<void> {
    for (let { first } = this.#row; first && !this.#head; { first } = this.#row) {
      if (first === this.#open?.segment) await this.#seal()
      const contents = await this.#read(first)
      if (!contents) continue
      const { entries, aside } = contents
      for (const { start, what, content, why } of aside)
        await this.#putAside(first.path, start, what, content, why)
      first.letters = entries.length
      if (entries.length > 0) this.#head = { segment: first, entries }
      else await this.#row.drop(first)
    }
  }

  /** One that cannot be read is tried again, and those behind it wait, or a lane would lose its order; but not for ever. */
  async #read(segment: Segment): Promise<Contents | undefined> {
    const { path, from, bytes } = segment
    try {
      const contents = await readSegment(path, from, bytes)
      segment.failures = 0
      return contents
    } catch (cause) {
      segment.failures += 1
      const last = isForeign(cause) || segment.failures === maxFailures
      if (last) this.#row.leave(segment)
      if (last || segment.failures === 1) this.#complain(path, cause)
      if (last) return undefined
      throw new RedriveError(
        'STORE_UNAVAILABLE',
        `${path} cannot be read and is tried again: ${(cause as Error).message}`,
        { cause },
      )
    }
  }

  async settle(count: number): Promise<void> {
    const head = this.#head
    if (!head || count === 0) return
    const { segment, entries } = head
    const [last] = entries.splice(0, count).slice(-1)
    const [next] = entries
    segment.from = last!.end
    segment.letters = entries.length
    if (next) {
      segment.oldestAt = next.letter.deadLetteredAt
      // What cannot be noted down is sent twice after a crash; that must not stop the rest.
      await writeCursor(this.place, segment).catch(() => {})
    } else {
      this.#head = undefined
      await this.#inTurn(() => this.#row.drop(segment))
    }
  }

  #complain(path: string, error: unknown): void {
    this.#options.tell({ type: 'error', during: `reading the spool ${path}`, error })
  }

  async refuse({ letter, start }: Entry, why: string): Promise<void> {
    const content = refusal(letterToJson(letter), why)
    await this.#putAside(this.#head!.segment.path, start, 'refused', content, why)
  }

  async #putAside(
    segment: string,
    start: number,
    what: AsideKind,
    content: Uint8Array | string,
    why: string,
  ): Promise<void> {
    const file = asideFile(segment, start, what)
    await writeAside(file, content)
    this.#options.tell({ type: 'set-aside', what, file, why })
  }

  async aside(): Promise<Aside> {
    return { ...(await asideIn(this.place)), unreadable: this.#row.unreadable }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => {})
    return done
  }
}

/** A letter that JSON cannot hold is the caller's mistake. */
function writable(letters: readonly DeadLetter[]): Buffer {
  try {
    return recordsOf(letters)
  } catch (cause) {
    throw new RedriveError(
      'INVALID_INPUT',
      `a letter cannot be written to the spool: ${(cause as Error).message}`,
      { cause },
    )
  }
}
