import { rmdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { workerBeside } from '../../backends/sqlite/channel.ts'
import { SqliteThread } from '../../backends/sqlite/thread.ts'
import type { Clock } from '../../clock/clock.ts'
import { hasCode, RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { letterFromJson, letterToJson } from '../../letter/schema.ts'
import type { Timestamp } from '../../letter/time.ts'
import { fullError, type Backlog, type Emit, type Entry } from './backlog.ts'
import type { Refusal, SetAside } from './backlog.ts'
import type { FolderEvent, FolderStatus, SpoolMethods } from './folder-keeper.ts'
import { inspectFolder, makeFolder } from './folder.ts'
import type { NewRow } from './letter-file.ts'

const program = workerBeside(import.meta.url, 'redrive-spool')

/** Letters that wait in SQLite files. The thread that writes them starts with the first letter. */
export class DiskBacklog implements Backlog {
  readonly place: string
  readonly #maxBytes: number
  readonly #clock: Clock
  readonly #thread: SqliteThread<SpoolMethods>
  #status: FolderStatus = { letters: 0, bytes: 0, oldestAt: undefined, files: 0, unreadable: 0 }
  /** Appends in flight. */
  #appends = 0
  #appendBytes = 0
  /** Whether this process created the folder, and removes it when it is empty. */
  #made = false

  constructor(path: string, maxBytes: number, clock: Clock, emit: Emit) {
    this.place = resolve(path)
    this.#maxBytes = maxBytes
    this.#clock = clock
    this.#thread = new SqliteThread({
      program,
      file: this.place,
      now: () => clock.now(),
      onEvent: (reported) => {
        const event = reported as FolderEvent
        if (event.type === 'status') this.#status = event.status
        else emit(event)
      },
      toLossError: (cause) => {
        const message = `the thread of the spool ${this.place} ended; letters in flight may or may not be stored`
        return new RedriveError('STORE_UNAVAILABLE', message, { cause })
      },
    })
  }

  get letters(): number {
    return this.#status.letters
  }

  get bytes(): number {
    return this.#status.bytes
  }

  get oldestAt(): Timestamp | undefined {
    return this.#status.oldestAt
  }

  get empty(): boolean {
    return this.#status.files === 0 && this.#appends === 0
  }

  async open(): Promise<void> {
    try {
      this.#made = makeFolder(this.place)
      const { files, oldFiles } = await inspectFolder(this.place)
      if (oldFiles.length > 0) throw oldFormatError(this.place, oldFiles)
      if (files.length > 0) await this.#thread.call('open', null)
    } catch (cause) {
      await this.#thread.close()
      if (hasCode(cause, 'STORE_UNSAFE')) throw cause
      throw new RedriveError(
        'INVALID_CONFIG',
        `no spool can be kept in ${this.place} (${(cause as Error).message}): set spoolPath to a folder that can be written to, or onStoreDown to 'fail'`,
        { cause },
      )
    }
  }

  async close(): Promise<void> {
    await this.#thread.close()
    if (this.#made) await rmdir(this.place).catch(() => {})
  }

  async append(letters: readonly DeadLetter[]): Promise<void> {
    if (letters.length === 0) return
    const rows = letters.map((letter) => encodeLetter(letter))
    const bytes = rows.reduce((sum, [, json]) => sum + Buffer.byteLength(json), 0)
    if (this.bytes + this.#appendBytes + bytes > this.#maxBytes)
      throw fullError(this.place, this.#maxBytes)
    this.#appends += 1
    this.#appendBytes += bytes
    try {
      await this.#thread.call('append', { id: this.#clock.id(), rows }, rows.length)
    } finally {
      this.#appends -= 1
      this.#appendBytes -= bytes
    }
  }

  async head(limit: number): Promise<Entry[]> {
    if (this.empty) return []
    const rows = await this.#thread.call('head', limit)
    return rows.map(({ file, seq, json }) => ({ letter: decodeLetter(json), file, seq }))
  }

  async settle(entries: readonly Entry[], refused: readonly Refusal[]): Promise<void> {
    const last = entries.at(-1)
    if (!last) return
    await this.#thread.call('settle', {
      file: last.file,
      upTo: last.seq,
      refused: refused.map(({ entry: { seq, letter }, why }) => ({
        seq,
        letter: letterToJson(letter),
        why,
      })),
    })
  }

  async countSetAside(): Promise<SetAside> {
    const { damaged, refused } = await inspectFolder(this.place)
    return { damaged, refused, unreadable: this.#status.unreadable }
  }
}

/**
 * Rejects a letter that could not be read again. Payload bytes are always readable and may be
 * large, so the check leaves them out.
 */
function encodeLetter(letter: DeadLetter): NewRow {
  try {
    const payload = { ...letter.payload, bytes: '', size: 0 }
    const read = letterFromJson(JSON.parse(JSON.stringify({ ...letter, payload })))
    if (!read.ok) throw new TypeError(read.problem)
    return [letter.deadLetteredAt, JSON.stringify(letterToJson(letter))]
  } catch (cause) {
    const message = `a letter cannot be written to the spool: ${(cause as Error).message}`
    throw new RedriveError('INVALID_INPUT', message, { cause })
  }
}

function decodeLetter(json: string): DeadLetter {
  const read = letterFromJson(JSON.parse(json))
  if (!read.ok) throw new TypeError(read.problem)
  return read.letter
}

function oldFormatError(place: string, files: readonly string[]): RedriveError {
  return new RedriveError(
    'STORE_UNSAFE',
    `the spool ${place} has letters in the format of an earlier version (${files.join(', ')}): start that version until they are in the store, or move the files away`,
  )
}
