import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import { matches, type LetterFilter } from '../../letter/query.ts'
import { grow, hasCounts, valuesOf } from '../rows/tally.ts'
import type { TallyKey } from '../../store.ts'

/** What letters of one cell have in common, and how many they are. */
interface Cell {
  like: Pick<DeadLetter, 'queue' | 'state' | 'category' | 'priority' | 'policy'>
  count: number
}

type Cells = Map<string, Cell>

/** How many letters there are of each kind, kept up with every change, so that counting them costs no scan. */
export class Counts {
  readonly #cells: Cells = new Map()
  readonly #groups = new Map<string, Cells>()
  readonly #tags = new Map<string, Cells>()

  /** Takes note of a letter that came, changed or went. */
  move(before: DeadLetter | undefined, after: DeadLetter | undefined): void {
    if (before) this.#shift(before, -1)
    if (after) this.#shift(after, 1)
  }

  /** Undefined when the filter asks for more than the cells know. */
  tally(key: TallyKey, filter: LetterFilter): Map<string, number> | undefined {
    if (!hasCounts(key, filter)) return undefined
    const tally = new Map<string, number>()
    if (key === 'group' || key === 'tag') {
      for (const [value, cells] of key === 'group' ? this.#groups : this.#tags)
        for (const cell of cells.values()) addTo(tally, value, cell, filter)
    } else {
      for (const cell of this.#cells.values())
        addTo(tally, valuesOf(cell.like as LetterSummary, key)[0]!, cell, filter)
    }
    return tally
  }

  #shift(letter: DeadLetter, by: 1 | -1): void {
    const key = `${letter.state} ${letter.category} ${letter.priority} ${letter.policy.kind} ${letter.queue}`
    shift(this.#cells, key, letter, by)
    shiftOf(this.#groups, letter.fingerprint, key, letter, by)
    for (const tag of new Set(letter.tags)) shiftOf(this.#tags, tag, key, letter, by)
  }
}

function addTo(tally: Map<string, number>, value: string, cell: Cell, filter: LetterFilter): void {
  if (matches(cell.like as LetterSummary, filter)) grow(tally, value, cell.count)
}

function shiftOf(
  all: Map<string, Cells>,
  value: string,
  key: string,
  letter: DeadLetter,
  by: 1 | -1,
): void {
  let cells = all.get(value)
  if (!cells) all.set(value, (cells = new Map()))
  shift(cells, key, letter, by)
  if (cells.size === 0) all.delete(value)
}

function shift(cells: Cells, key: string, letter: DeadLetter, by: 1 | -1): void {
  const cell = cells.get(key)
  if (cell) {
    cell.count += by
    if (cell.count === 0) cells.delete(key)
  } else {
    const { queue, state, category, priority, policy } = letter
    cells.set(key, { like: { queue, state, category, priority, policy }, count: by })
  }
}
