import type { Clock } from '../../clock/clock.ts'
import { checkListLimit } from '../search.ts'
import type { Json } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { DocumentRecord, Records } from '../../store.ts'
import { copyOf } from './copy.ts'
import { Sorted } from './sorted.ts'

/** Documents of one kind, by id. */
interface Drawer {
  byId: Map<string, DocumentRecord>
  inOrder: Sorted<DocumentRecord>
}

/** Records in memory. `check` is called before everything, and throws when the store is closed. */
export function memoryRecords(clock: Clock, check: () => void): Records {
  return new MemoryRecords(clock, check)
}

class MemoryRecords implements Records {
  readonly #clock: Clock
  readonly #check: () => void
  readonly #kinds = new Map<string, Drawer>()

  constructor(clock: Clock, check: () => void) {
    this.#clock = clock
    this.#check = check
  }

  async get(kind: string, id: string): Promise<DocumentRecord | undefined> {
    this.#check()
    return copyOf(this.#kinds.get(kind)?.byId.get(id))
  }

  async put(
    kind: string,
    id: string,
    value: Json,
    expectedVersion?: number,
  ): Promise<'written' | 'conflict'> {
    this.#check()
    const old = this.#kinds.get(kind)?.byId.get(id)
    const version = old?.version ?? 0
    if (expectedVersion !== undefined && expectedVersion !== version) return 'conflict'
    const updatedAt = toTimestamp(this.#clock.now())
    const record: DocumentRecord = { id, version: version + 1, value: copyOf(value), updatedAt }
    const drawer = this.#drawer(kind)
    if (old) drawer.inOrder.delete(old)
    drawer.inOrder.add(record)
    drawer.byId.set(id, record)
    return 'written'
  }

  async list(
    kind: string,
    options: { prefix?: string; after?: string; limit?: number } = {},
  ): Promise<DocumentRecord[]> {
    this.#check()
    checkListLimit(options.limit)
    const { prefix = '', after, limit = Number.POSITIVE_INFINITY } = options
    const passed = ({ id }: DocumentRecord): boolean =>
      id < prefix || (after !== undefined && id <= after)
    const found: DocumentRecord[] = []
    for (const record of this.#kinds.get(kind)?.inOrder.ascend(passed) ?? []) {
      if (found.length >= limit || !record.id.startsWith(prefix)) break
      found.push(copyOf(record))
    }
    return found
  }

  async remove(kind: string, id: string): Promise<boolean> {
    this.#check()
    const drawer = this.#kinds.get(kind)
    const record = drawer?.byId.get(id)
    if (!drawer || !record) return false
    drawer.byId.delete(id)
    drawer.inOrder.delete(record)
    if (drawer.byId.size === 0) this.#kinds.delete(kind)
    return true
  }

  async kinds(): Promise<string[]> {
    this.#check()
    return [...this.#kinds.keys()].toSorted()
  }

  #drawer(kind: string): Drawer {
    let drawer = this.#kinds.get(kind)
    if (!drawer) {
      drawer = { byId: new Map(), inOrder: new Sorted((a, b) => a.id < b.id) }
      this.#kinds.set(kind, drawer)
    }
    return drawer
  }
}
