import { statfsSync, statSync } from 'node:fs'
import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { FilePlace } from '../../backends/sqlite/place.ts'

/** Space reserved for settling and removing: bytes, or a share of a small disk. */
const reserveBytes = 64 * 2 ** 20
const reserveShare = 0.1

/**
 * While there is plenty the disk is looked at after so many writes, or at the next write after so
 * long.
 */
const writesBetweenChecks = 16
const betweenChecksMs = 5

/** The disk of the file: whether the file is still in place, and whether there is room. */
export class Disk {
  readonly #path: string
  readonly #place: FilePlace
  #low = false
  #writesToCheck = 0
  #checkAtMs = 0

  constructor(path: string, place: FilePlace) {
    this.#path = path
    this.#place = place
  }

  /** Called before each write. Throws if the file is not in place. */
  check(): void {
    if (--this.#writesToCheck > 0 && systemClock.mono() < this.#checkAtMs) return
    const [problem] = this.problems()
    if (problem && !this.#low) throw new RedriveError('STORE_UNAVAILABLE', problem)
  }

  /** True: no letter may be added, so that stored letters can still be settled and removed. */
  isLow(): boolean {
    return this.#low
  }

  /** Problems right now. */
  problems(): string[] {
    this.#checkAtMs = 0
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
      this.#writesToCheck = writesBetweenChecks
      this.#checkAtMs = systemClock.mono() + betweenChecksMs
    }
    if (!this.#low) return []
    return [
      `sqlite ${this.#path}: the disk is nearly full (${Math.floor(left / 1024)} KiB left): new letters are rejected so that stored letters can still be settled and removed; free some space`,
    ]
  }
}
