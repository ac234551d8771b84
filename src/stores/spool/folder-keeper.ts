import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { AnyCall, Report } from '../../backends/sqlite/protocol.ts'
import type { FileHandler } from '../../backends/sqlite/serve.ts'
import { RedriveError } from '../../errors.ts'
import { letterFromJson } from '../../letter/schema.ts'
import type { Timestamp } from '../../letter/time.ts'
import type { SpoolEvent } from './backlog.ts'
import { checkDiskSpace, isSpoolFile, makeFolder, syncFolder, writeDurably } from './folder.ts'
import { isDamaged, LetterFile, renameDamaged, type NewRow, type StoredRow } from './letter-file.ts'

/** Calls to the thread of a spool folder. */
export interface SpoolMethods {
  /** Takes over the files of processes that ended. The first call of any kind does this, too. */
  open: { request: null; response: null }
  /** `id` names the new file, if one is needed. */
  append: { request: { id: string; rows: NewRow[] }; response: null }
  head: { request: number; response: { file: string; seq: number; json: string }[] }
  /** Removes the rows of a file up to a row. `refused` rows are set aside first. */
  settle: { request: { file: string; upTo: number; refused: RefusedRow[] }; response: null }
}

interface RefusedRow {
  seq: number
  letter: unknown
  why: string
}

export interface FolderStatus {
  letters: number
  bytes: number
  oldestAt: Timestamp | undefined
  /** Files to drain, including those whose open is tried again. */
  files: number
  /** Files that could not be opened. */
  unreadable: number
}

/** What the thread reports beyond the results of calls. Every report begins with the status. */
export type FolderEvent = { type: 'status'; status: FolderStatus } | SpoolEvent

/** Approximate limit for the letters that one call reads. */
const maxReadBytes = 4 * 2 ** 20

/** How often a file is opened before it is left alone: for about a minute, as a drain pauses. */
const maxFailures = 8

/** How often a new file is created again because another process removed it. */
const maxCreates = 8

/**
 * The files of a spool folder, in their own thread. Each process writes to a file of its own. A
 * file that nobody has locked is from a process that ended: it is taken over and drained first.
 */
export class FolderKeeper implements FileHandler {
  readonly #folder: string
  readonly #report: (report: Report) => void
  /** In the order of draining. */
  #files: LetterFile[] = []
  /** The file that new letters are written to: the last one. */
  #own: LetterFile | undefined
  #isOpen = false
  /** Files that could not be opened, and how often that failed. */
  readonly #failures = new Map<string, number>()
  #events: SpoolEvent[] = []

  constructor(folder: string, report: (report: Report) => void) {
    this.#folder = folder
    this.#report = report
  }

  /** Runs a batch of calls. Its appends share one transaction. */
  run(_nowMs: number, calls: AnyCall[]): void {
    const results: Report['results'] = []
    const errors: Report['errors'] = []
    const attempt = (ids: readonly number[], act: () => unknown): void => {
      try {
        if (!this.#isOpen) this.#takeOver()
        const result = act()
        for (const id of ids) results.push([id, result])
      } catch (error) {
        const known = error instanceof RedriveError
        const code = known ? error.code : 'STORE_UNAVAILABLE'
        const context = known ? '' : `the spool ${this.#folder} cannot be used: `
        const message = context + (error as Error).message
        for (const id of ids) errors.push([id, { code, message }])
      }
    }
    const appends = calls.filter(([, method]) => method === 'append')
    const requests = appends.map(([, , request]) => request as SpoolMethods['append']['request'])
    const ids = appends.map(([id]) => id)
    if (requests.length > 0) attempt(ids, () => this.#append(requests))
    for (const [id, method, request] of calls)
      if (method === 'head') attempt([id], () => this.#head(request as number))
      else if (method === 'settle') attempt([id], () => this.#settle(request as never))
      else if (method === 'open') attempt([id], () => null)
    const status: FolderEvent = { type: 'status', status: this.#status() }
    this.#report({ results, errors, events: [status, ...this.#events.splice(0)], isDone: true })
  }

  close(): void {
    for (const file of this.#files) file.close()
  }

  #takeOver(): void {
    makeFolder(this.#folder)
    for (const name of readdirSync(this.#folder).sort())
      if (isSpoolFile(name)) this.#openFile(join(this.#folder, name))
    this.#isOpen = true
  }

  /** Opens a file to drain it. A damaged one is set aside; one that cannot be opened stays. */
  #openFile(path: string): void {
    try {
      const file = LetterFile.open(path)
      this.#failures.delete(path)
      if (file) this.#files.push(file)
      if (file?.letters === 0) this.#drop(file)
      // File names begin with an id, so that the older file comes first.
      this.#files.sort((a, b) => (a.path < b.path ? -1 : 1))
    } catch (error) {
      const { message } = error as Error
      if (isDamaged(error)) {
        const why = `the file is damaged (${message}): recover its letters with \`sqlite3 FILE .recover\``
        this.#events.push({ type: 'set-aside', what: 'damaged', file: renameDamaged(path), why })
        return
      }
      const failures = this.#failures.get(path) ?? 0
      this.#failures.set(path, error instanceof RedriveError ? maxFailures : failures + 1)
      const event = { during: `opening ${path}`, error: new Error(message) }
      if (failures === 0) this.#events.push({ type: 'error', ...event })
    }
  }

  /** Files that cannot be opened now, but are tried again. */
  #retryable(): string[] {
    return [...this.#failures].flatMap(([path, count]) => (count < maxFailures ? path : []))
  }

  /** Deletes a file that has no letters. */
  #drop(file: LetterFile): void {
    file.delete()
    this.#files = this.#files.filter((other) => other !== file)
    if (this.#own === file) this.#own = undefined
  }

  #append(requests: readonly SpoolMethods['append']['request'][]): null {
    const rows = requests.flatMap((request) => request.rows)
    const bytes = rows.reduce((sum, [, json]) => sum + json.length, 0)
    // Another process may have removed the empty folder.
    makeFolder(this.#folder)
    checkDiskSpace(this.#folder, bytes)
    const file = (this.#own ??= this.#create(requests[0]!.id))
    try {
      file.append(rows)
      return null
    } catch (error) {
      // What the disk has is unknown: the file is opened again for draining, and not written to.
      this.#own = undefined
      this.#files = this.#files.filter((other) => other !== file)
      file.close()
      this.#openFile(file.path)
      throw error
    }
  }

  #create(id: string): LetterFile {
    for (let attempt = 0; attempt < maxCreates; attempt++) {
      const file = LetterFile.create(join(this.#folder, `${id}-${attempt}.spool`))
      if (!file) continue
      this.#files.push(file)
      syncFolder(this.#folder)
      return file
    }
    throw new Error(`no file can be created in ${this.#folder}`)
  }

  #head(limit: number): SpoolMethods['head']['response'] {
    for (const path of this.#retryable()) this.#openFile(path)
    const [unopened] = this.#retryable()
    if (unopened) throw new Error(`${unopened} cannot be opened and is tried again`)
    for (let [file] = this.#files; file; [file] = this.#files) {
      const { path } = file
      const rows = file.read(limit, maxReadBytes)
      const problem = rows[0] && findProblem(rows[0])
      if (!rows[0]) this.#drop(file)
      else if (problem) {
        this.#setAside(path, rows[0].seq, problem)
        file.removeUpTo(rows[0].seq)
      } else {
        const unusable = rows.findIndex((row) => findProblem(row) !== undefined)
        const usable = unusable === -1 ? rows : rows.slice(0, unusable)
        return usable.map(({ seq, letter }) => ({ file: path, seq, json: decode(letter) }))
      }
    }
    return []
  }

  #settle({ file: path, upTo, refused }: SpoolMethods['settle']['request']): null {
    for (const { seq, letter, why } of refused) this.#setAside(path, seq, refusal(letter, why))
    const file = this.#files.find((one) => one.path === path)
    file?.removeUpTo(upTo)
    if (file?.letters === 0) this.#drop(file)
    return null
  }

  #setAside(path: string, seq: number, { what, content, why }: Problem): void {
    const suffix = what === 'refused' ? 'refused.json' : what
    const file = path.replace(/\.spool$/, `-${seq}.${suffix}`)
    writeDurably(file, content)
    this.#events.push({ type: 'set-aside', what, file, why })
  }

  #status(): FolderStatus {
    const letters = this.#files.reduce((sum, file) => sum + file.letters, 0)
    const bytes = this.#files.reduce((sum, file) => sum + file.bytes, 0)
    const files = this.#files.length + this.#retryable().length
    const oldestAt = this.#files[0]?.oldestAt()
    return { letters, bytes, oldestAt, files, unreadable: this.#failures.size }
  }
}

/** Why a row cannot be delivered, and what to write to the file that is set aside. */
interface Problem {
  what: 'damaged' | 'refused'
  content: Uint8Array | string
  why: string
}

function findProblem({ letter, crc }: StoredRow): Problem | undefined {
  if (crc32(letter) !== crc)
    return { what: 'damaged', content: letter, why: 'the bytes differ from those written' }
  const value: unknown = JSON.parse(decode(letter))
  const read = letterFromJson(value)
  return read.ok ? undefined : refusal(value, `it is not a letter: ${read.problem}`)
}

function refusal(letter: unknown, why: string): Problem {
  return { what: 'refused', content: `${JSON.stringify({ why, letter }, undefined, 2)}\n`, why }
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}
