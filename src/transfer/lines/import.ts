import { checkKeys, keysOf } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import type { Store, StoredLetter } from '../../store.ts'
import { saveDamaged } from '../copy/records.ts'
import { addTo, emptyListing, type Listing } from '../listing.ts'
import { readLines, type ReadLine } from './read.ts'
import type { Chunks } from './split.ts'

export interface LetterImportOptions {
  /**
   * True: lines that are damaged or invalid are skipped and reported. Default: false, the first one
   * ends the import.
   */
  skipDamaged?: boolean
  /** True: only checks the lines, and writes nothing. */
  verifyOnly?: boolean
  /** Lines with more bytes are damaged. Default: 256 MiB. */
  maxLineBytes?: number
  /** Stops the import between two batches. Importing again is harmless. */
  signal?: AbortSignal
  onProgress?: (progress: ImportProgress) => void
}

export interface ImportProgress {
  letters: number
  /** Number of bytes that were read. */
  bytes: number
}

export interface LetterImportReport {
  /** True: the end of the export was reached. */
  complete: boolean
  /** Letters that were read. */
  letters: number
  /** Letters that were written. */
  added: number
  /** Letters that the store has already, in the same version or a higher one. They stay. */
  existing: number
  /**
   * Letters that were damaged in the store from which they were exported. The readable part is
   * stored in records of the kind `damaged`.
   */
  damaged: Listing<{ id: string; why: string }>
  /** Lines that were skipped. */
  problems: Listing<string>
}

const importKeys = keysOf<LetterImportOptions>({
  skipDamaged: true,
  verifyOnly: true,
  maxLineBytes: true,
  signal: true,
  onProgress: true,
})

const batchLetters = 250
const batchBytes = 4 * 2 ** 20

/**
 * Imports letters from the lines of an export. A letter that the store has in the same version or a
 * higher one stays, so importing again changes nothing. At the first damaged line the import ends
 * with an error that names the line; the letters before it are imported.
 */
export async function importLines(
  store: Store,
  chunks: Chunks,
  options: LetterImportOptions = {},
): Promise<LetterImportReport> {
  const opened = await openImport(chunks, options)
  return opened.into(options.verifyOnly ? undefined : store)
}

export interface OpenedImport {
  /** Reads the other lines and imports them. Without a store, it only checks them. */
  into(store?: Store): Promise<LetterImportReport>
}

/**
 * Reads the first line, so that an input that is not an export is rejected before a store is
 * created.
 */
export async function openImport(
  chunks: Chunks,
  options: LetterImportOptions = {},
): Promise<OpenedImport> {
  checkKeys('import options', options, importKeys)
  const { skipDamaged = false, maxLineBytes } = options
  const report: LetterImportReport = {
    complete: false,
    letters: 0,
    added: 0,
    existing: 0,
    damaged: emptyListing(),
    problems: emptyListing(),
  }
  const lines = readLines(chunks, {
    ...(maxLineBytes === undefined ? {} : { maxLineBytes }),
    ...(skipDamaged ? { onProblem: ({ message }) => addTo(report.problems, message) } : {}),
  })
  await lines.next()
  return { into: (store) => importAll(store, lines, report, options) }
}

async function importAll(
  store: Store | undefined,
  lines: AsyncIterable<ReadLine>,
  report: LetterImportReport,
  { signal, onProgress }: LetterImportOptions,
): Promise<LetterImportReport> {
  const batch = new Batch(async (letters) => {
    if (store) await keepAll(store, letters, report)
  })
  try {
    for await (const line of lines) {
      if (line.kind === 'footer') report.complete = true
      if (line.kind !== 'letter') continue
      report.letters += 1
      const { id, corrupt } = line.stored.letter
      if (corrupt !== undefined) addTo(report.damaged, { id, why: corrupt })
      if (!(await batch.add(line))) continue
      onProgress?.({ letters: report.letters, bytes: line.end })
      if (signal?.aborted) return report
    }
  } finally {
    await batch.flush()
  }
  return report
}

/** Writes letters. Of letters that are damaged, it stores the readable part as a record. */
async function keepAll(
  store: Store,
  letters: readonly StoredLetter[],
  report: LetterImportReport,
): Promise<void> {
  await saveDamaged(
    store,
    letters.filter(({ letter }) => letter.corrupt !== undefined),
  )
  const results = await store.keep(letters.filter(({ letter }) => letter.corrupt === undefined))
  for (const result of results) {
    if (result === 'written') report.added += 1
    else report.existing += 1
  }
}

/** Letters that are written together. */
class Batch {
  readonly #write: (letters: readonly StoredLetter[]) => Promise<void>
  #lines: (ReadLine & { kind: 'letter' })[] = []
  #bytes = 0

  constructor(write: (letters: readonly StoredLetter[]) => Promise<void>) {
    this.#write = write
  }

  /** True: the batch was full, and is written. */
  async add(line: ReadLine & { kind: 'letter' }): Promise<boolean> {
    this.#lines.push(line)
    this.#bytes += line.size
    if (this.#lines.length < batchLetters && this.#bytes < batchBytes) return false
    await this.flush()
    return true
  }

  async flush(): Promise<void> {
    const lines = this.#lines
    if (lines.length === 0) return
    this.#lines = []
    this.#bytes = 0
    try {
      await this.#write(lines.map(({ stored }) => stored))
    } catch (error) {
      if (!(error instanceof RedriveError)) throw error
      const range = `lines ${lines[0]!.number} to ${lines.at(-1)!.number}`
      throw new RedriveError(error.code, `${range}: ${error.message}`, { cause: error })
    }
  }
}
