import { chmodSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** A file that is held by one process of this machine, for as long as it lives and wants to. */
export interface Lock {
  /** Lets go, and leaves the file. */
  release(): void
  /** Lets go, and takes the file away. */
  remove(): void
}

/**
 * Takes the lock, or answers undefined when someone else has it or has just done with it. Node has no file locks, but SQLite does: the system
 * lets go of one when its process dies, however it dies, and nothing needs to be guessed from process ids or times.
 * Nothing else may open the file: closing it anywhere in the process would let go of the lock.
 */
export function takeLock(path: string): Lock | undefined {
  const file = new DatabaseSync(path, { timeout: 0 })
  try {
    // A journal in memory, or there would be a second file.
    file.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    chmodSync(path, 0o600)
  } catch (error) {
    file.close()
    // Whoever had it has taken the file away meanwhile, and with it all that it was for.
    if (isBusy(error) || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const release = (): void => void (file.isOpen && file.close())
  return {
    release,
    remove: () => {
      // While it is still held: whoever comes later finds no file, and whoever has it open finds nothing to do.
      rmSync(path, { force: true })
      release()
    },
  }
}

const sqliteBusy = 5

function isBusy(error: unknown): boolean {
  return ((error as { errcode?: number }).errcode ?? 0) % 256 === sqliteBusy
}
