import { statfsSync, statSync } from 'node:fs'
import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { FilePlace } from '../../backends/sqlite/place.ts'

/** What is kept free for settling and removing: so much, or on a small disk this share of it. */
const reserveBytes = 64 * 2 ** 20
const reserveShare = 0.1

/**
 * While there is plenty the disk is looked at after so many writes, or at the next write after so
 * long.
 */
const writesBetweenLooks = 16
const betweenLooksMs = 5

/** The file on its disk: whether it is still in its place, and whether there is room. */
export interface Disk {
  /** To be called before each write. Throws when the file is not in its place. */
  check(): void
  /** True: no letter may be added, so that those kept can still be settled and removed. */
  isLow(): boolean
  /** What is wrong right now, in words. */
  problems(): string[]
}

export function diskOf(path: string, place: FilePlace): Disk {
  return new FileDisk(path, place)
}

class FileDisk implements Disk {
  readonly #path: string
  readonly #place: FilePlace
  #low = false
  #writesToLook = 0
  #lookAtMs = 0

  constructor(path: string, place: FilePlace) {
    this.#path = path
    this.#place = place
  }

  check(): void {
    if (--this.#writesToLook > 0 && systemClock.mono() < this.#lookAtMs) return
    const [problem] = this.problems()
    if (problem && !this.#low) throw new RedriveError('STORE_UNAVAILABLE', problem)
  }

  isLow(): boolean {
    return this.#low
  }

  problems(): string[] {
    this.#lookAtMs = 0
    this.#low = false
    const misplaced = this.#place.problem()
    return misplaced === undefined ? this.#roomProblems() : [misplaced]
  }

  /**
   * What stands in the WAL must fit into the file, so the reserve is at least as large as the WAL.
   */
  #roomProblems(): string[] {
    const { bavail, blocks, bsize } = statfsSync(this.#path)
    const left = bavail * bsize
    const walBytes = statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0
    const reserve = Math.max(blocks * bsize * reserveShare, walBytes)
    this.#low = left <= Math.min(reserveBytes, reserve)
    if (left > 2 * reserveBytes) {
      this.#writesToLook = writesBetweenLooks
      this.#lookAtMs = systemClock.mono() + betweenLooksMs
    }
    if (!this.#low) return []
    return [
      `sqlite ${this.#path}: the disk is nearly full (${Math.floor(left / 1024)} KiB left): new letters are refused, so that those kept can still be settled and removed; free some space`,
    ]
  }
}
