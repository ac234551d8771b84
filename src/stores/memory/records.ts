import type { Clock } from '../../clock/clock.ts'
import { copyOf } from '../../letter/copy.ts'
import type { Json } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { DocumentRecord, RecordQuery, Records } from '../../store.ts'
import { recordQueryOf } from '../search.ts'
import { compareIds } from './entry.ts'

/** Records in memory. */
export class MemoryRecords implements Records {
  readonly #clock: Clock
  readonly #checkOpen: () => void
  /** By kind, then by id. */
  readonly #kinds = new Map<string, Map<string, DocumentRecord>>()

  /** `checkOpen` is called first by every method, and throws if the store is closed. */
  constructor(clock: Clock, checkOpen: () => void) {
    this.#clock = clock
    this.#checkOpen = checkOpen
  }

  async get(kind: string, id: string): Promise<DocumentRecord | undefined> {
    this.#checkOpen()
    return copyOf(this.#kinds.get(kind)?.get(id))
  }

  async put(
    kind: string,
    id: string,
    value: Json,
    expectedVersion?: number,
  ): Promise<'written' | 'conflict'> {
    this.#checkOpen()
    const records = this.#kinds.get(kind) ?? new Map<string, DocumentRecord>()
    const version = records.get(id)?.version ?? 0
    if (expectedVersion !== undefined && expectedVersion !== version) return 'conflict'
    const updatedAt = toTimestamp(this.#clock.now())
    records.set(id, { id, version: version + 1, value: copyOf(value), updatedAt })
    this.#kinds.set(kind, records)
    return 'written'
  }

  async list(kind: string, query: RecordQuery = {}): Promise<DocumentRecord[]> {
    this.#checkOpen()
    const { prefix = '', after, limit, ids } = recordQueryOf(query)
    if (ids) return ids.flatMap((id) => copyOf(this.#kinds.get(kind)?.get(id) ?? []))
    return [...(this.#kinds.get(kind)?.values() ?? [])]
      .filter(({ id }) => id.startsWith(prefix) && (after === undefined || id > after))
      .sort(compareIds)
      .slice(0, limit)
      .map(copyOf)
  }

  async remove(kind: string, id: string): Promise<boolean> {
    this.#checkOpen()
    const records = this.#kinds.get(kind)
    const removed = records?.delete(id) ?? false
    if (records?.size === 0) this.#kinds.delete(kind)
    return removed
  }

  async kinds(): Promise<string[]> {
    this.#checkOpen()
    return [...this.#kinds.keys()].toSorted()
  }
}
