import type { DeadLetter } from '../../letter/letter.ts'
import { matches, type LetterFilter } from '../../letter/query.ts'
import type { TallyKey } from '../../store.ts'
import { grow, hasCounts, isGroupKey, valuesOf } from '../rows/tally.ts'

/** Number of letters by queue, state, category, priority and policy: most tallies need no scan. */
export class Counts {
  /** For each combination: one of its letters, and how many there are. */
  readonly #cells = new Map<string, { letter: DeadLetter; count: number }>()

  add(letter: DeadLetter, n: 1 | -1): void {
    const { queue, state, category, priority, policy } = letter
    const key = `${state} ${category} ${priority} ${policy.kind} ${queue}`
    const count = (this.#cells.get(key)?.count ?? 0) + n
    if (count > 0) this.#cells.set(key, { letter, count })
    else this.#cells.delete(key)
  }

  /** Undefined: the counts do not suffice. */
  tally(by: TallyKey, filter: LetterFilter): Map<string, number> | undefined {
    const isNamed = isGroupKey(by) || by === 'tag' || filter.group !== undefined
    if (isNamed || !hasCounts(by, filter)) return undefined
    const tally = new Map<string, number>()
    for (const { letter, count } of this.#cells.values())
      if (matches(letter, filter)) grow(tally, valuesOf(letter, by)[0]!, count)
    return tally
  }
}
