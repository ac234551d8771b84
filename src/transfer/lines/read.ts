import { createHash, type Hash } from 'node:crypto'
import { RedriveError } from '../../errors.ts'
import type { StoredLetter } from '../../store.ts'
import { readFooter, readHeader, readLetter, type Footer, type Header } from './line.ts'
import { splitLines, type Chunks, type RawLine } from './split.ts'

type Content =
  | { kind: 'header'; header: Header }
  | { kind: 'letter'; stored: StoredLetter; size: number }
  | { kind: 'footer'; footer: Footer }

/** A line of an export that was read and checked. */
export type ReadLine = Content & {
  number: number
  /** Number of bytes up to the end of this line. */
  end: number
}

export interface ReadOptions {
  /** Lines with more bytes are not read. Default: 256 MiB. */
  maxLineBytes?: number
  /** Called with each problem; the line is then skipped. Default: the problem is thrown. */
  onProblem?: (problem: RedriveError) => void
  /** Gets the bytes of all lines before the last one. */
  hash?: Hash
}

/** A line is one string of Node, which cannot be longer than 512 MiB. */
const defaultMaxLineBytes = 256 * 2 ** 20

const throwProblem = (problem: RedriveError): void => {
  throw problem
}

/**
 * Reads and checks the lines of an export, one at a time. If the first line is not a header, the
 * input is not an export, and it is rejected whatever `onProblem` does.
 */
export async function* readLines(
  chunks: Chunks,
  { maxLineBytes = defaultMaxLineBytes, onProblem = throwProblem, hash }: ReadOptions = {},
): AsyncGenerator<ReadLine> {
  const reader = new LineReader(maxLineBytes, hash ?? createHash('sha256'))
  for await (const raw of splitLines(chunks, maxLineBytes)) {
    const line = reader.read(raw)
    if (!(line instanceof RedriveError)) yield line
    else if (raw.number === 1) throw line
    else onProblem(line)
  }
  const missing = reader.findMissingEnd()
  if (missing) onProblem(missing)
}

/** Checks lines in their order. */
class LineReader {
  readonly #maxLineBytes: number
  readonly #hash: Hash
  #end = 0
  #lines = 0
  #letters = 0
  #damaged = 0
  #isEnded = false

  constructor(maxLineBytes: number, hash: Hash) {
    this.#maxLineBytes = maxLineBytes
    this.#hash = hash
  }

  /** The content of the line, or the problem that it has. */
  read(raw: RawLine): ReadLine | RedriveError {
    this.#lines = raw.number
    this.#end += raw.size
    try {
      return { ...this.#parse(raw), number: raw.number, end: this.#end }
    } catch (error) {
      if (!(error instanceof RedriveError)) throw error
      if (!this.#isEnded) this.#damaged += 1
      return problemAt(raw.number, error.message, error)
    }
  }

  /** The problem of an input that ends before its last line. */
  findMissingEnd(): RedriveError | undefined {
    if (this.#isEnded) return undefined
    if (this.#lines === 0) return invalid('not an export of letters: it is empty')
    return problemAt(this.#lines + 1, 'the last line is missing: the file was cut off')
  }

  #parse({ number, bytes, size, complete }: RawLine): Content {
    if (this.#isEnded) throw invalid('it is after the last line of the export: remove it')
    if (!bytes)
      throw invalid(
        `it has ${size} bytes, and at most ${this.#maxLineBytes} are read: raise maxLineBytes`,
      )
    const footer = number === 1 ? undefined : readFooter(bytes)
    if (footer) {
      this.#isEnded = true
      this.#checkFooter(footer)
      return { kind: 'footer', footer }
    }
    if (!complete) throw invalid('it is cut off')
    const content: Content =
      number === 1
        ? { kind: 'header', header: readHeader(bytes) }
        : { kind: 'letter', stored: readLetter(bytes), size }
    if (content.kind === 'letter') this.#letters += 1
    this.#hash.update(bytes)
    return content
  }

  #checkFooter({ letters, sha256 }: Footer): void {
    const found = this.#letters + this.#damaged
    if (found !== letters)
      throw invalid(`the export has ${letters} letters, and the file has ${found}`)
    // Damaged lines are reported already, and are not in the hash.
    if (this.#damaged === 0 && this.#hash.copy().digest('hex') !== sha256)
      throw invalid('the sha256 of the lines before is wrong: lines were changed or moved')
  }
}

function problemAt(line: number, message: string, cause?: unknown): RedriveError {
  return new RedriveError('INVALID_INPUT', `line ${line}: ${message}`, { cause })
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
