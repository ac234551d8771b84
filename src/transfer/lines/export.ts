import { createHash, type Hash } from 'node:crypto'
import { checkFilter } from '../../check/filter.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import type { Clock } from '../../clock/clock.ts'
import { hasCode, RedriveError } from '../../errors.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import { writeCursor, type LetterFilter } from '../../letter/query.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Store, StoredLetter } from '../../store.ts'
import { readIdPages } from '../copy/batches.ts'
import { writeFooter, writeHeader, writeLetter, type Header } from './line.ts'
import { readLines } from './read.ts'
import type { Chunks } from './split.ts'

export interface ExportOptions {
  /** Only letters with a higher id: continues an export of which this was the last letter. */
  after?: string
  onProgress?: (progress: ExportProgress) => void
  /** Changes each letter before it is written, such as to redact it. */
  show?: (stored: StoredLetter) => StoredLetter
}

export interface ExportProgress {
  letters: number
  /** Letters that the store cannot read completely. Their lines have the readable part. */
  damaged: number
}

/** Where an unfinished export ends. */
export interface ExportPosition {
  header: Header
  /** Number of bytes of the complete lines. */
  bytes: number
  letters: number
  /** The id of the last letter. */
  last: string | undefined
  /** Of the complete lines. */
  hash: Hash
  /** True: the export is complete. */
  isFinished: boolean
}

const exportKeys = keysOf<ExportOptions>({ after: true, onProgress: true, show: true })

/**
 * All matching letters as JSON Lines, oldest first, each with all data that the store has about
 * it. Each string is one line with its line break. Letters are read in batches as the consumer
 * takes lines, so memory use stays flat. A letter that changes meanwhile is exported as it is when
 * its batch is read.
 */
export async function* exportLines(
  store: Store,
  clock: Clock,
  filter: LetterFilter,
  options: ExportOptions = {},
  from?: ExportPosition,
): AsyncGenerator<string> {
  checkFilter(filter)
  checkKeys('export options', options, exportKeys)
  const { after = from?.header.after, onProgress, show = (stored) => stored } = options
  if (after !== undefined && !isLetterId(after))
    throw new RedriveError('INVALID_INPUT', `after must be the id of a letter, got "${after}"`)
  const hash = from?.hash ?? createHash('sha256')
  const write = (line: string): string => {
    hash.update(line)
    return line
  }
  if (!from) {
    const createdAt = toTimestamp(clock.now())
    yield write(writeHeader({ createdAt, filter, ...(after === undefined ? {} : { after }) }))
  }
  const start = from?.last ?? after
  const cursor =
    start === undefined ? undefined : writeCursor({ order: 'oldest', key: start, id: start })
  let letters = from?.letters ?? 0
  let damaged = 0
  for await (const { batches } of readIdPages(store, cursor, filter))
    for (const ids of batches) {
      for (const stored of await store.stored(ids)) {
        letters += 1
        if (stored.letter.corrupt !== undefined) damaged += 1
        yield write(writeLetter(show(stored)))
      }
      onProgress?.({ letters, damaged })
    }
  yield writeFooter({ letters, sha256: hash.digest('hex') })
}

/**
 * Finds the last complete line of an export that was interrupted. Everything after it is to be cut
 * off. Rejects if the first line is not that of an export.
 */
export async function findPosition(chunks: Chunks): Promise<ExportPosition> {
  const hash = createHash('sha256')
  const position: Partial<ExportPosition> = { bytes: 0, letters: 0, isFinished: false, hash }
  try {
    for await (const line of readLines(chunks, { hash })) {
      if (line.kind === 'header') position.header = line.header
      if (line.kind === 'letter') position.last = line.stored.letter.id
      if (line.kind === 'letter') position.letters! += 1
      if (line.kind === 'footer') position.isFinished = true
      position.bytes = line.end
    }
  } catch (error) {
    if (!position.header || !hasCode(error, 'INVALID_INPUT')) throw error
  }
  return position as ExportPosition
}
