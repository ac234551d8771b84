import { cellOf, codesPerQueue, counter, type Cell } from './codes.ts'

/** Sums over actions on letters. */
export interface Sums {
  n: number
  retries: number
  maxRetries: number
  backoffMs: number
}

/** A change of one counter row. */
export interface Delta extends Sums {
  queue: number
  kind: number
  name: string
  code: number
}

/** Number of kinds of counter rows. */
const kinds = Object.keys(counter).length

/** What a letter is counted by, except its tags. */
type Counting = Omit<Cell, 'queue'> & { fingerprint: string }

/**
 * Changes of the counts in one transaction. They are collected so that each row is written once.
 */
export class Deltas {
  /** By name, then by key and kind. */
  readonly #deltas = new Map<string, Map<number, Delta>>()

  /** Counts letters that were added (positive) or removed (negative). */
  count(queue: number, row: Counting, tags: readonly string[], n: number): void {
    const cell = cellOf(queue, row)
    this.#delta(cell, counter.cell, '').n += n
    this.#delta(cell, counter.group, row.fingerprint).n += n
    for (const tag of tags) this.#delta(cell, counter.tag, tag).n += n
  }

  tag(queue: number, row: Omit<Cell, 'queue'>, tag: string, n: number): void {
    this.#delta(cellOf(queue, row), counter.tag, tag).n += n
  }

  /** Adds an action on a letter to the totals, with its values after the action. */
  total(
    queue: number,
    action: number,
    { priority, retries, backoffMs }: { priority: number; retries: number; backoffMs: number },
  ): void {
    this.totals(queue, action, priority, { n: 1, retries, maxRetries: retries, backoffMs })
  }

  /** Adds actions on letters of one priority to the totals. */
  totals(queue: number, action: number, priority: number, sums: Sums): void {
    addTo(this.#delta(queue * codesPerQueue + action * 4 + priority, counter.total, ''), sums)
  }

  /** The rows with a non-zero change. */
  changed(): Delta[] {
    const all = [...this.#deltas.values()].flatMap((named) => [...named.values()])
    return all.filter(({ n }) => n !== 0)
  }

  clear(): void {
    this.#deltas.clear()
  }

  #delta(key: number, kind: number, name: string): Delta {
    let named = this.#deltas.get(name)
    if (!named) this.#deltas.set(name, (named = new Map()))
    const id = key * kinds + kind
    const known = named.get(id)
    if (known) return known
    const [queue, code] = [Math.floor(key / codesPerQueue), key % codesPerQueue]
    const delta = { queue, kind, name, code, n: 0, retries: 0, maxRetries: 0, backoffMs: 0 }
    named.set(id, delta)
    return delta
  }
}

export function addTo(sum: Sums, more: Sums): void {
  sum.n += more.n
  sum.retries += more.retries
  sum.maxRetries = Math.max(sum.maxRetries, more.maxRetries)
  sum.backoffMs += more.backoffMs
}
