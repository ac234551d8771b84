import { dueOf } from '../rows/due.ts'
import type { HistoryEntry } from '../../letter/letter.ts'
import { maxHistory } from '../../letter/history.ts'
import { isActiveCode, resolved, wait } from '../rows/codes.ts'
import { tagsOf } from '../rows/rest.ts'
import type { Row } from '../rows/row.ts'
import type { StoreContext } from './context.ts'
import { Deltas } from '../rows/deltas.ts'
import { writeDeltas } from './counters.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { updateLetters, type RowUpdate } from './row-update.ts'
import { withChecksum, waitOf, type Entry } from './rows.ts'
import { toText } from './text.ts'
import { releaseDependents, releaseUnblocked, settleLanes, type Lane } from './waits.ts'

const addTags =
  'INSERT INTO @tags SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING'
const dropTags = `DELETE FROM @tags t USING unnest($1::text[], $2::text[]) AS u(tag, id)
  WHERE t.tag = u.tag AND t.id = u.id AND t.id = ANY($2::text[])`
const addLines = 'INSERT INTO @history SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])'
const dropLines = `DELETE FROM @history h USING unnest($1::text[], $2::bigint[]) AS u(id, last)
  WHERE h.id = u.id AND h.id = ANY($1::text[]) AND h.n BETWEEN 1 AND u.last`

/**
 * Resolves later with whether a letter became claimable. Boxed, so that awaiting the send does not
 * wait for it.
 */
export interface Sent {
  shouldWake: Promise<boolean>
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
 * The writes of one transaction. Changes are collected row by row, and `flush` writes them in a few
 * statements with their consequences: history, tags, counts, lanes and dependents.
 */
export class WriteSet {
  readonly deltas = new Deltas()
  readonly #rewrites = new Map<string, Rewrite>()
  readonly #lines: Line[] = []
  readonly #trims = new Map<string, number>()
  readonly #tags: { gone: [string, string][]; fresh: [string, string][] } = { gone: [], fresh: [] }
  readonly #lanes = new Map<string, Lane>()
  readonly #resolved: string[] = []
  readonly #due: (number | null)[] = []
  /** Letters that are held until their dependencies are known to be resolved. */
  readonly #unsure: string[] = []

  /**
   * Adds an entry to the history of a row to be written; beyond the bound, the second oldest entry
   * is omitted.
   */
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

  /** Writes the new state of a letter. */
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

  /** Records that a letter joined or left its lane, or began or ended a run. */
  changeLane(queue: number, lane: string): void {
    this.#lanes.set(`${queue} ${lane}`, { queue, lane: toText(lane) })
  }

  /** Records that the letter is resolved; others may depend on it. */
  resolve(id: string): void {
    this.#resolved.push(toText(id))
  }

  /** Records that a letter is claimable from this time on. */
  due(at: number | null): void {
    this.#due.push(at)
  }

  get resolved(): readonly string[] {
    return this.#resolved
  }

  /**
   * Sends all statements, without waiting for their answers. `waiting` are the letters that depend
   * on resolved letters.
   */
  async flush(
    context: StoreContext,
    tx: Transaction,
    slot: number,
    waiting: readonly Cells[],
  ): Promise<Sent> {
    this.#sendRows(tx)
    this.#sendHistory(tx)
    sendPairs(tx, dropTags, this.#tags.gone)
    sendPairs(tx, addTags, this.#tags.fresh)
    const { lanes, freed } = await releaseDependents(
      tx,
      context.connection,
      this.#resolved,
      waiting,
    )
    const free = [
      freed,
      releaseUnblocked(tx, this.#unsure),
      settleLanes(tx, [...this.#lanes.values(), ...lanes]),
    ]
    writeDeltas(tx, slot, this.deltas)
    // If the answers are lost but the commit succeeds, watchers are woken anyway.
    return { shouldWake: this.#shouldWake(context, free).catch(() => true) }
  }

  /** Whether a letter is claimable now, by the clock of this machine: only a hint. */
  async #shouldWake(context: StoreContext, free: Promise<Cells[]>[]): Promise<boolean> {
    const more = (await Promise.all(free)).flat().map(([at]) => at as number | null)
    const soon = (context.now() ?? context.clock.now()) + 2000
    return [...this.#due, ...more].some((at) => at !== null && at <= soon)
  }

  #sendRows(tx: Transaction): void {
    const all = [...this.#rewrites.values()].map((rewrite) => this.#toUpdate(rewrite))
    updateLetters(tx, all)
  }

  #toUpdate({ entry, next, size }: Rewrite): RowUpdate {
    const unchanged = entry.row.state === next.state
    // Lane and dependencies hold the letter as before; after a change of state they are checked
    // again.
    const held = unchanged ? entry.wait === wait.held : next.lane !== null || next.dependent === 1
    const place = waitOf(next, held)
    if (place === wait.held && next.lane === null) this.#unsure.push(toText(next.id))
    const due = dueOf(next)
    if (place === wait.ready) this.due(due)
    const rest = next.rest === entry.row.rest ? null : next.rest
    return { row: withChecksum(next, entry.sound), rest, size, wait: place, due }
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
