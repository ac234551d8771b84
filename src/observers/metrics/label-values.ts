/** The label of everything above a limit. */
const otherValue = 'other'

const maxLength = 200

/**
 * The values of a label. Names come from outside, and each is a series that Prometheus keeps: the
 * first `max` names have series of their own, and all further ones share `other`.
 */
export class LabelValues {
  readonly #known = new Set<string>()
  readonly #max: number
  readonly #onNew: ((value: string) => void) | undefined

  /** `onNew` is called with each value when it is first used. */
  constructor(max: number, onNew?: (value: string) => void) {
    this.#max = max
    this.#onNew = onNew
  }

  of(name: string): string {
    const value = name.slice(0, maxLength).toWellFormed()
    if (this.#known.has(value)) return value
    const added = this.#known.size < this.#max ? value : otherValue
    if (!this.#known.has(added)) {
      this.#known.add(added)
      this.#onNew?.(added)
    }
    return added
  }
}
