import { dueOf } from '../rows/due.ts'
import type { HistoryEntry } from '../../letter/letter.ts'
import { maxHistory } from '../../letter/moves.ts'
import { isActiveCode, resolved, wait } from '../rows/codes.ts'
import { tagsOf } from '../rows/rest.ts'
import type { Row } from '../rows/row.ts'
import type { Books } from './books.ts'
import { Deltas } from '../rows/deltas.ts'
import { writeDeltas } from './counters.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { updateLetters, type Placed } from './placed.ts'
import { sealed, waitOf, type Entry } from './rows.ts'
import { toText } from './text.ts'
import { freeFrom, recheck, settleLanes, type Lane } from './waits.ts'

const addTags =
  'INSERT INTO @tags SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING'
const dropTags = `DELETE FROM @tags t USING unnest($1::text[], $2::text[]) AS u(tag, id)
  WHERE t.tag = u.tag AND t.id = u.id AND t.id = ANY($2::text[])`
const addLines = 'INSERT INTO @history SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])'
const dropLines = `DELETE FROM @history h USING unnest($1::text[], $2::bigint[]) AS u(id, last)
  WHERE h.id = u.id AND h.id = ANY($1::text[]) AND h.n BETWEEN 1 AND u.last`

/** Says later whether something became free to be claimed at once. Boxed, so that whoever awaits the sending does not wait for it. */
export interface Sent {
  woken: Promise<boolean>
}

interface Line {
  id: string
  n: number
  entry: string
}

interface Rewrite {
  entry: Entry
  next: Row
  size: number
}

/**
 * What one transaction does to letters. Changes gather here, row by row as they are decided, and `flush` writes them together in a
 * few statements, with all that follows from them: history, tags, counts, the next in a lane, whoever depends on them.
 */
export class Writing {
  readonly deltas = new Deltas()
  readonly #rewrites = new Map<string, Rewrite>()
  readonly #lines: Line[] = []
  readonly #trims = new Map<string, number>()
  readonly #tags: { gone: [string, string][]; fresh: [string, string][] } = { gone: [], fresh: [] }
  readonly #lanes = new Map<string, Lane>()
  readonly #resolved: string[] = []
  readonly #due: (number | null)[] = []
  /** Letters that are held, unless what they depended on is resolved. */
  readonly #unsure: string[] = []

  /** Adds an entry to the history of a row that is about to be written; past the bound the second oldest goes. */
  remember(row: Row, entry: HistoryEntry): void {
    this.note(row.id, row.entries, entry)
    row.entries += 1
    const excess = row.entries - row.omitted - maxHistory
    if (excess <= 0) return
    row.omitted += excess
    this.#trims.set(row.id, row.omitted)
  }

  note(id: string, n: number, entry: HistoryEntry): void {
    this.#lines.push({ id: toText(id), n, entry: JSON.stringify(entry) })
  }

  /** Writes a letter as it now stands, and remembers it as such. */
  rewrite(entry: Entry, next: Row, size = entry.size): void {
    const { row, queue } = entry
    const known = this.#rewrites.get(row.id)
    const before = tagsOf(row)
    const after = next.rest === row.rest ? before : tagsOf(next)
    for (const tag of before) if (!after.includes(tag)) this.untag(tag, row.id)
    for (const tag of after) if (!before.includes(tag)) this.tag(tag, row.id)
    this.deltas.count(queue, row, before, -1)
    this.deltas.count(queue, next, after, 1)
    const inLane = isActiveCode(row.state) || isActiveCode(next.state)
    if (row.lane !== null && inLane && row.state !== next.state) this.changeLane(queue, row.lane)
    if (next.state === resolved && row.state !== resolved) this.resolve(row.id)
    this.#rewrites.set(row.id, { entry: known?.entry ?? { ...entry }, next, size })
  }

  tag(tag: string, id: string): void {
    this.#tags.fresh.push([toText(tag), toText(id)])
  }

  untag(tag: string, id: string): void {
    this.#tags.gone.push([toText(tag), toText(id)])
  }

  /** A letter joined its lane, left it, or began or ended a run. */
  changeLane(queue: number, lane: string): void {
    this.#lanes.set(`${queue} ${lane}`, { queue, lane: toText(lane) })
  }

  /** The letter is resolved, which others may wait for. */
  resolve(id: string): void {
    this.#resolved.push(toText(id))
  }

  /** A letter is free to be claimed from then on. */
  due(at: number | null): void {
    this.#due.push(at)
  }

  get resolved(): readonly string[] {
    return this.#resolved
  }

  /** Sends all of it, and answers as soon as it is sent. `waiting` are those that wait for letters that are now resolved. */
  async flush(
    books: Books,
    tx: Transaction,
    slot: number,
    waiting: readonly Cells[],
  ): Promise<Sent> {
    this.#sendRows(tx)
    this.#sendHistory(tx)
    sendPairs(tx, dropTags, this.#tags.gone)
    sendPairs(tx, addTags, this.#tags.fresh)
    const { lanes, freed } = await freeFrom(tx, books.connection, this.#resolved, waiting)
    const free = [
      freed,
      recheck(tx, this.#unsure),
      settleLanes(tx, [...this.#lanes.values(), ...lanes]),
    ]
    writeDeltas(tx, slot, this.deltas)
    // When the answers are lost and the commit is not, watchers look for themselves.
    return { woken: this.#woken(books, free).catch(() => true) }
  }

  /** Whether there is something to claim now, as far as this machine's clock can tell: it is for a hint. */
  async #woken(books: Books, free: Promise<Cells[]>[]): Promise<boolean> {
    const more = (await Promise.all(free)).flat().map(([at]) => at as number | null)
    const soon = (books.now() ?? books.clock.now()) + 2000
    return [...this.#due, ...more].some((at) => at !== null && at <= soon)
  }

  #sendRows(tx: Transaction): void {
    const all = [...this.#rewrites.values()].map((rewrite) => this.#placed(rewrite))
    updateLetters(tx, all)
  }

  #placed({ entry, next, size }: Rewrite): Placed {
    const unchanged = entry.row.state === next.state
    // A lane, and what it depends on, keep holding it as they did; after a change they are asked anew.
    const held = unchanged ? entry.wait === wait.held : next.lane !== null || next.dependent === 1
    const place = waitOf(next, held)
    if (place === wait.held && next.lane === null) this.#unsure.push(toText(next.id))
    const due = dueOf(next)
    if (place === wait.ready) this.due(due)
    const rest = next.rest === entry.row.rest ? null : next.rest
    return { row: sealed(next, entry.sound), rest, size, wait: place, due }
  }

  #sendHistory(tx: Transaction): void {
    const lines = this.#lines
    if (lines.length > 0)
      void tx.rows(addLines, [
        lines.map(({ id }) => id),
        lines.map(({ n }) => n),
        lines.map(({ entry }) => entry),
      ])
    if (this.#trims.size > 0)
      void tx.rows(dropLines, [[...this.#trims.keys()].map(toText), [...this.#trims.values()]])
  }
}

function sendPairs(tx: Transaction, sql: string, pairs: readonly [string, string][]): void {
  if (pairs.length > 0) void tx.rows(sql, [pairs.map(([a]) => a), pairs.map(([, b]) => b)])
}
