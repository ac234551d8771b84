import { cellOf, codesPerQueue, counter, type Cell } from './codes.ts'
import type { Row } from './row.ts'

/** Sums over what happened to letters. */
export interface Sums {
  n: number
  retries: number
  maxRetries: number
  backoffMs: number
}

/** What is to be added to one row of the counters. */
export interface Delta extends Sums {
  queue: number
  kind: number
  name: string
  code: number
}

/** What a letter is counted under, its tags aside. */
type Counting = Omit<Cell, 'queue'> & Pick<Row, 'fingerprint'>

/** What one transaction changes in the counts. It gathers here, so that each row that is touched is written once. */
export class Deltas {
  readonly #deltas = new Map<string, Delta>()

  /** Takes note of letters that came (+) or went (-). */
  count(queue: number, row: Counting, tags: readonly string[], n: number): void {
    const cell = cellOf(queue, row)
    this.#delta(cell, counter.cell, '').n += n
    this.#delta(cell, counter.group, row.fingerprint).n += n
    for (const tag of tags) this.#delta(cell, counter.tag, tag).n += n
  }

  tag(queue: number, row: Omit<Cell, 'queue'>, tag: string, n: number): void {
    this.#delta(cellOf(queue, row), counter.tag, tag).n += n
  }

  /** Takes note of what happened to a letter, which now stands like this. */
  total(queue: number, action: number, row: Row): void {
    const { priority, retries, backoffMs } = row
    this.totals(queue, action, priority, { n: 1, retries, maxRetries: retries, backoffMs })
  }

  /** Takes note of what happened to letters of one priority. */
  totals(queue: number, action: number, priority: number, sums: Sums): void {
    addTo(this.#delta(queue * codesPerQueue + action * 4 + priority, counter.total, ''), sums)
  }

  /** The rows that change, those of cells that came to nothing aside. */
  changed(): Delta[] {
    return [...this.#deltas.values()].filter(({ n }) => n !== 0)
  }

  clear(): void {
    this.#deltas.clear()
  }

  #delta(key: number, kind: number, name: string): Delta {
    const id = `${key} ${kind}${name}`
    const known = this.#deltas.get(id)
    if (known) return known
    const [queue, code] = [Math.floor(key / codesPerQueue), key % codesPerQueue]
    const delta = { queue, kind, name, code, n: 0, retries: 0, maxRetries: 0, backoffMs: 0 }
    this.#deltas.set(id, delta)
    return delta
  }
}

export function addTo(sum: Sums, more: Sums): void {
  sum.n += more.n
  sum.retries += more.retries
  sum.maxRetries = Math.max(sum.maxRetries, more.maxRetries)
  sum.backoffMs += more.backoffMs
}
