import {
  closeSync,
  createReadStream,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { RedriveError } from '../errors.ts'
import { stoppedExit, stopOnSignal } from './stop-on-signal.ts'
import { terminal } from './terminal.ts'

/**
 * The path to replace: the target of a link, so that the link stays. Only regular files may be
 * replaced.
 */
export function resolveTarget(file: string): string {
  try {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (!stats && !lstatSync(file, { throwIfNoEntry: false })) return file
    if (!stats)
      throw new RedriveError(
        'INVALID_INPUT',
        `cannot write ${file}: it is a link to a file that does not exist: name the target of the link`,
      )
    if (stats.isFile()) return realpathSync(file)
    const reason = stats.isDirectory()
      ? 'it is a folder: name a file in it'
      : `it is not a regular file: use standard output, such as redrive export > ${file}`
    throw new RedriveError('INVALID_INPUT', `cannot write ${file}: ${reason}`)
  } catch (error) {
    throw toWriteError(file, error)
  }
}

function toWriteError(file: string, error: unknown): RedriveError {
  if (error instanceof RedriveError) return error
  const { code, message } = error as NodeJS.ErrnoException
  const why =
    code === 'ENOENT' ? 'its folder does not exist: create it, or correct the path' : message
  return new RedriveError('INVALID_INPUT', `cannot write ${file}: ${why}`, { cause: error })
}

/**
 * The new file is complete and synced before it replaces the old one; if anything fails, the old
 * one stays.
 */
export async function replaceFile(
  file: string,
  draftId: string,
  fill: (write: (text: string) => void) => Promise<number>,
): Promise<number> {
  const draft = `${file}.${draftId}.tmp`
  const stopping = stopOnSignal()
  // Cleaned up at once on a signal: the old file is complete, and the store may be slow to answer.
  stopping.signal.addEventListener('abort', () => {
    rmSync(draft, { force: true })
    terminal.exit(stoppedExit)
  })
  try {
    const descriptor = openSync(draft, 'wx', 0o600)
    let count: number
    try {
      count = await fill((text) => writeFully(descriptor, text))
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(draft, file)
    syncFolder(dirname(file))
    return count
  } catch (error) {
    rmSync(draft, { force: true })
    throw toWriteError(file, error)
  } finally {
    stopping.end()
  }
}

/** Repeats partial writes until all bytes are written. */
function writeFully(descriptor: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at)
}

/** Syncs the folder, so that the new name is durable. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

const bufferedBytes = 256 * 1024

/**
 * A file that is written next to its final path, as FILE.part, and takes its place when it is
 * finished. After an interruption it stays, and can be continued.
 */
export class PartFile {
  readonly #file: string
  readonly #path: string
  readonly #descriptor: number
  #buffered = ''
  #isOpen = true

  private constructor(file: string, path: string, descriptor: number) {
    this.#file = file
    this.#path = path
    this.#descriptor = descriptor
  }

  /** The unfinished file, or undefined if there is none. */
  static find(file: string): string | undefined {
    const path = `${file}.part`
    return statSync(path, { throwIfNoEntry: false }) ? path : undefined
  }

  static create(file: string): PartFile {
    const path = `${file}.part`
    try {
      return new PartFile(file, path, openSync(path, 'wx', 0o600))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw toWriteError(file, error)
      throw new RedriveError(
        'INVALID_INPUT',
        `${path} is an unfinished export: add --resume to continue it, or remove it`,
      )
    }
  }

  /** Continues the unfinished file after its first `bytes` bytes. The rest is cut off. */
  static continue(file: string, bytes: number): PartFile {
    const path = `${file}.part`
    try {
      const descriptor = openSync(path, 'a')
      ftruncateSync(descriptor, bytes)
      return new PartFile(file, path, descriptor)
    } catch (error) {
      throw toWriteError(file, error)
    }
  }

  write(text: string): void {
    this.#buffered += text
    if (this.#buffered.length >= bufferedBytes) this.#flush()
  }

  /** Makes the file durable and puts it in its place. */
  finish(): void {
    this.close()
    try {
      renameSync(this.#path, this.#file)
      syncFolder(dirname(this.#file))
    } catch (error) {
      throw toWriteError(this.#file, error)
    }
  }

  /** Makes what was written durable. The file stays unfinished. May be called twice. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      this.#flush()
      fsyncSync(this.#descriptor)
    } catch (error) {
      throw toWriteError(this.#file, error)
    } finally {
      closeSync(this.#descriptor)
    }
  }

  #flush(): void {
    const text = this.#buffered
    this.#buffered = ''
    try {
      writeFully(this.#descriptor, text)
    } catch (error) {
      throw toWriteError(this.#file, error)
    }
  }
}

/** Reads a file in chunks. */
export async function* readChunks(file: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: 2 ** 20 }))
      yield chunk as Buffer
  } catch (error) {
    throw new RedriveError('INVALID_INPUT', `cannot read ${file}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}
