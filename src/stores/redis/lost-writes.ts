/**
 * Detects lost writes. The server counts the scripts that moved letters, and the store remembers
 * the highest number. A lower number means that the server lost acknowledged writes, as after a
 * truncated append-only file or a failover to a replica that was behind. Remembered for the life of
 * the store only.
 */
export class LostWriteDetector {
  #moves = 0
  #lost = 0
  #strays = 0

  /** Takes the number of moves that the server reports. */
  observe(moves: number): void {
    if (moves < this.#moves) this.#lost += this.#moves - moves
    this.#moves = moves
  }

  /** Counts index entries without a letter. */
  addStrays(count: number): void {
    this.#strays += count
  }

  /** Problems for `health`. */
  problems(): string[] {
    const problems: string[] = []
    if (this.#lost > 0)
      problems.push(
        `the server lost at least ${this.#lost} acknowledged writes: check for a truncated append-only file or a failover`,
      )
    if (this.#strays > 0)
      problems.push(
        `${this.#strays} index entries have no readable letter: run redrive doctor --repair`,
      )
    return problems
  }
}
