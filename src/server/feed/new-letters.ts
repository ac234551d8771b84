import type { Clock } from '../../clock/clock.ts'
import type { LetterSummary } from '../../letter/letter.ts'
import { writeCursor, type LetterFilter, type LetterQuery, type Page } from '../../letter/query.ts'
import { firstPosition, idAt, msOfId } from './letter-position.ts'

/**
 * How long after its capture a letter may become visible in the store and still be found. It covers
 * slow commits and clocks that disagree.
 */
const lateMs = 30_000
/** How often all letters of that time are read, and not only the latest. */
const fullReadMs = 10_000
const pageLetters = 100
/** Letters that one read looks at, or that one catch-up returns. */
export const maxLetters = 1000
/** Ids that are remembered. Letters before them count as known. */
const maxIds = 5000

export interface NewLettersOptions {
  find: (query: LetterQuery) => Promise<Page<LetterSummary>>
  filter: LetterFilter
  clock: Clock
}

/**
 * Finds the letters that were stored since the last read. Ids sort by the time of capture, but
 * letters become visible in another order: a commit takes time, and clocks of hosts disagree. So
 * every read looks at recent letters again and leaves out those that it knows.
 */
export class NewLetters {
  readonly #options: NewLettersOptions
  /** Ids of known letters after `#floor`. */
  #known = new Set<string>()
  /** Letters up to this id are not new. */
  #floor = ''
  #position = firstPosition
  #fullReadAtMs: number | undefined

  constructor(options: NewLettersOptions) {
    this.#options = options
  }

  /** The id of the newest known letter, or `firstPosition`. */
  get position(): string {
    return this.#position
  }

  /** New letters, the oldest first. The first read returns none: the letters of then are known. */
  async read(): Promise<LetterSummary[]> {
    const nowMs = this.#options.clock.mono()
    const isFirst = this.#fullReadAtMs === undefined
    const isFull = isFirst || nowMs - this.#fullReadAtMs! >= fullReadMs
    if (isFirst) this.#floor = await this.#firstFloor()
    const { letters, reached } = await this.#readBack(isFull)
    if (isFull) this.#fullReadAtMs = nowMs
    for (const { id } of letters) this.#known.add(id)
    this.#advance(
      letters.map(({ id }) => id),
      reached,
    )
    return isFirst ? [] : letters.toReversed()
  }

  /**
   * Letters after a position, the oldest first, and those that may have become visible later.
   * Undefined: too many.
   */
  async since(position: string): Promise<LetterSummary[] | undefined> {
    const { find, filter } = this.#options
    const from = position === firstPosition ? position : this.#floorOf(position)
    const cursor = writeCursor({ order: 'oldest', key: from, id: from })
    const page = await find({
      ...filter,
      order: 'oldest',
      limit: maxLetters,
      ...(position === firstPosition ? {} : { cursor }),
    })
    return page.cursor === undefined ? page.items : undefined
  }

  async #firstFloor(): Promise<string> {
    const { find, filter } = this.#options
    const [newest] = (await find({ ...filter, order: 'newest', limit: 1 })).items
    return newest ? this.#floorOf(newest.id) : ''
  }

  /** Letters up to this id are too old to become visible, now that this one is. */
  #floorOf(id: string): string {
    return idAt(Math.min(msOfId(id), this.#options.clock.now()) - lateMs)
  }

  /** Reads from the newest letter back to one before which nothing can be new. */
  async #readBack(isFull: boolean): Promise<{ letters: LetterSummary[]; reached?: string }> {
    const { find, filter } = this.#options
    const letters: LetterSummary[] = []
    const query = { ...filter, order: 'newest', limit: pageLetters } as const
    let page = await find(query)
    for (let read = page.items.length; ; read += page.items.length) {
      const fresh = page.items.filter(({ id }) => id > this.#floor && !this.#known.has(id))
      letters.push(...fresh)
      const oldest = page.items.at(-1)?.id ?? ''
      if (page.cursor === undefined || oldest <= this.#floor) return { letters }
      if (fresh.length === 0 && !isFull) return { letters }
      if (read >= maxLetters) return { letters, reached: oldest }
      page = await find({ ...query, cursor: page.cursor })
    }
  }

  /** `reached`: the read has ended here, at its limit, so that older letters are given up. */
  #advance(ids: readonly string[], reached = ''): void {
    const nowMs = this.#options.clock.now()
    // An id that a program has made up may be of any time.
    const newest = ids.find((id) => msOfId(id) <= nowMs + lateMs)
    if (newest !== undefined && newest > this.#position) this.#position = newest
    const floors = [this.#floor, reached]
    if (this.#position !== firstPosition) floors.push(this.#floorOf(this.#position))
    if (this.#known.size > maxIds) floors.push([...this.#known].sort().at(-maxIds)!)
    this.#floor = floors.reduce((one, other) => (other > one ? other : one))
    for (const id of this.#known) if (id <= this.#floor) this.#known.delete(id)
  }
}
