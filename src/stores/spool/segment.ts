import { open, readFile, rm, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { hasCode, RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { letterFromJson, letterToJson } from '../../letter/schema.ts'
import type { AsideKind, Entry } from './backlog.ts'
import { syncFolder } from './folder.ts'
import { piecesOf, recordOf } from './record.ts'

const version = 1
const header = recordOf(Buffer.from(JSON.stringify({ spool: version })))

/** Letters as the records of a segment. Throws what JSON throws at what it cannot hold, and when one could not be read again. */
export function recordsOf(letters: readonly DeadLetter[]): Buffer {
  return Buffer.concat(
    letters.map((letter) => {
      mustBeReadable(letter)
      return recordOf(Buffer.from(JSON.stringify(letterToJson(letter))))
    }),
  )
}

/** The bytes of a payload can always be read, and may be many: they are left out. */
function mustBeReadable(letter: DeadLetter): void {
  const payload = { ...letter.payload, bytes: '', size: 0 }
  const read = letterFromJson(JSON.parse(JSON.stringify({ ...letter, payload })))
  if (!read.ok) throw new TypeError(read.problem)
}

/** The end of a segment that is written to. */
export class SegmentWriter {
  readonly #file: FileHandle
  #bytes = 0

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** A new file, for its owner only, that survives the loss of power. */
  static async create(path: string): Promise<SegmentWriter> {
    const writer = new SegmentWriter(await open(path, 'wx', 0o600))
    try {
      await writer.write(header)
      await syncFolder(dirname(path))
      return writer
    } catch (error) {
      await writer.close()
      await rm(path, { force: true })
      throw error
    }
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * When it resolves, the records are flushed. When it fails nobody knows what the disk has, and a second flush
   * could claim what is not so: what was written is cut off again, and the segment must not be written to any more.
   */
  async write(records: Buffer): Promise<void> {
    try {
      await this.#file.appendFile(records)
      await this.#file.datasync()
      if ((await this.#file.stat()).nlink === 0) throw new Error('its file was removed')
      this.#bytes += records.length
    } catch (error) {
      await this.#file.truncate(this.#bytes).catch(() => {})
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#file.close()
  }
}

/** What a segment holds. */
export interface Contents {
  entries: Entry[]
  aside: Stray[]
}

/** What is no letter. */
interface Stray {
  what: AsideKind
  start: number
  content: Uint8Array | string
  why: string
}

/** Reads a segment from a byte on. What lies behind `size` was never acknowledged; without one, all of it is read. */
export async function readSegment(
  path: string,
  from: number,
  size?: number,
): Promise<Contents & { bytes: number }> {
  const bytes = (await readFile(path)).subarray(0, size)
  const contents: Contents = { entries: [], aside: [] }
  for (const piece of piecesOf(bytes, from)) {
    const { start, end } = piece
    if ('damage' in piece) {
      const found = piece.damage === 'torn' ? 'cut short' : 'not what was written'
      const why = `${end - start} bytes of the journal are ${found}`
      contents.aside.push({ what: piece.damage, start, content: bytes.subarray(start, end), why })
      continue
    }
    const value = parsed(piece.body)
    if (isHeader(value)) {
      checkVersion(path, value.spool)
      continue
    }
    const read = letterFromJson(value)
    if (read.ok) contents.entries.push({ letter: read.letter, start, end })
    else {
      const why = `it is no letter: ${read.problem}`
      contents.aside.push({ what: 'refused', start, content: refusal(value, why), why })
    }
  }
  return { ...contents, bytes: bytes.length }
}

function checkVersion(path: string, found: unknown): void {
  if (found === version) return
  throw new RedriveError(
    'STORE_UNSAFE',
    `${path} is of version ${String(found)}, which this Redrive does not know: it was left as it is`,
  )
}

/** Whether a segment is of a version that is not known here: reading it again will not help. */
export function isForeign(error: unknown): boolean {
  return hasCode(error, 'STORE_UNSAFE')
}

/** What becomes of a letter that the store cannot take: it, and why. */
export function refusal(letter: unknown, why: string): string {
  return `${JSON.stringify({ why, letter }, undefined, 2)}\n`
}

/** A body as JSON; one that is none as text. */
function parsed(body: Buffer): unknown {
  const text = body.toString()
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function isHeader(value: unknown): value is { spool: unknown } {
  return typeof value === 'object' && value !== null && 'spool' in value
}
