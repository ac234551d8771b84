import { statSync } from 'node:fs'

/**
 * Where a file was when it was opened. SQLite does not notice when the file is moved or removed.
 */
export class FilePlace {
  readonly #path: string
  readonly #inode: bigint

  /** The file must have just been opened. */
  constructor(path: string) {
    this.#path = path
    this.#inode = statSync(path, { bigint: true }).ino
  }

  /** The problem, if the file is no longer in its place. */
  problem(): string | undefined {
    const found = statSync(this.#path, { bigint: true, throwIfNoEntry: false })
    if (found?.ino === this.#inode) return undefined
    return `sqlite ${this.#path}: the file was moved, removed or replaced while it was open: nothing more is written to it; put it back, or restart`
  }
}
