/** The log of a run, and its fingerprint: equal runs have equal fingerprints. */
export class Trace {
  readonly #lines: string[] = []
  readonly #keep: number
  #hash = 0x811c9dc5
  #count = 0

  /** Keeps the last `keep` lines. */
  constructor(keep = 60) {
    this.#keep = keep
  }

  write(atMs: number, text: string): void {
    const line = `${atMs.toFixed(1).padStart(9)}  ${text}`
    let hash = this.#hash
    for (let at = 0; at < line.length; at++)
      hash = Math.imul(hash ^ line.charCodeAt(at), 0x01000193)
    this.#hash = hash
    this.#count++
    this.#lines.push(line)
    if (this.#lines.length > 2 * this.#keep) this.#lines.splice(0, this.#lines.length - this.#keep)
  }

  get fingerprint(): string {
    return `${(this.#hash >>> 0).toString(16).padStart(8, '0')}-${this.#count}`
  }

  last(count: number): string[] {
    return this.#lines.slice(-count)
  }
}
