// The parts of a test run and how long each took.
export interface Phase {
  readonly name: string
  readonly ms: number
}

export class Phases {
  readonly #done: Phase[] = []
  readonly #startMs: number = performance.now()

  /** Does the work and prints how long it took. */
  async time<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    const startMs = performance.now()
    try {
      return await work()
    } finally {
      const ms = performance.now() - startMs
      this.#done.push({ name, ms })
      console.log(`── ${name}: ${formatDuration(ms)}`)
    }
  }

  /** All phases so far, and the time since the first. */
  table(): Phase[] {
    return [...this.#done, { name: 'all', ms: performance.now() - this.#startMs }]
  }
}

/** Such as `3.2 s` and `12 min 31 s`. */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${(ms / 1000).toFixed(1)} s`
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

export function printTable(title: string, rows: readonly Phase[]): void {
  console.log(`\n${title}`)
  for (const { name, ms } of rows) console.log(`${formatDuration(ms).padStart(13)}  ${name}`)
}
