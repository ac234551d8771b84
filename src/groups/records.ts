// Groups as records, so that every store supports them.
import { RedriveError } from '../errors.ts'
import type { Json } from '../letter/letter.ts'
import { toMs } from '../letter/time.ts'
import type { Store } from '../store.ts'
import { untouched, type GroupState } from './life-cycle.ts'
import { mergeSeen, readSeen, writeSeen, type Seen } from './seen.ts'

const kinds = {
  /** What people did to groups. Few groups have such a record, so that all can be read at once. */
  state: 'group',
  /** What is known about the failures of a fingerprint. */
  seen: 'group-seen',
  /** Fingerprints that were first seen within a day. */
  fresh: 'group-new',
} as const

/** Attempts of a change when the record keeps changing concurrently. */
const maxAttempts = 20
const seenPerPage = 1000
/** Maximum number of new groups that are read at once. */
const maxNewGroups = 1000

/** How long a group counts as new. */
const maxNewMs = 86_400_000

export interface StateChange {
  before: GroupState
  after: GroupState
}

export class GroupRecords {
  readonly #store: Pick<Store, 'records'>

  constructor(store: Pick<Store, 'records'>) {
    this.#store = store
  }

  /** All groups that people have touched, by fingerprint. */
  async states(): Promise<Map<string, GroupState>> {
    const records = await this.#store.records.list(kinds.state)
    return new Map(records.map(({ id, value }) => [id, stateOf(value)]))
  }

  /** Changes a group. `change` is called again when the group has changed meanwhile. */
  async update(
    fingerprint: string,
    change: (state: GroupState) => GroupState,
  ): Promise<StateChange> {
    const { records } = this.#store
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const record = await records.get(kinds.state, fingerprint)
      const before = record ? stateOf(record.value) : untouched
      const after = change(before)
      if (after === before) return { before, after }
      const value = after as unknown as Json
      const result = await records.put(kinds.state, fingerprint, value, record?.version ?? 0)
      if (result === 'written') return { before, after }
    }
    throw new RedriveError(
      'VERSION_CONFLICT',
      `group ${fingerprint} kept changing during the call: try again`,
    )
  }

  /** What is known about these fingerprints. Unknown ones are left out. */
  async seen(fingerprints: readonly string[]): Promise<Map<string, Seen>> {
    const records = await this.#store.records.list(kinds.seen, { ids: fingerprints })
    return new Map(records.map(({ id, value }) => [id, readSeen(value)]))
  }

  /** What is known about each fingerprint. */
  async *eachSeen(): AsyncGenerator<[string, Seen]> {
    for (let after: string | undefined; ;) {
      const page = { limit: seenPerPage, ...(after === undefined ? {} : { after }) }
      const records = await this.#store.records.list(kinds.seen, page)
      for (const { id, value } of records) yield [id, readSeen(value)]
      if (records.length < seenPerPage) return
      after = records.at(-1)!.id
    }
  }

  /** Groups that were first seen within a day, and when. Reads at most 1,000. */
  async newGroups(nowMs: number): Promise<Map<string, number>> {
    const { records } = this.#store
    const groups = new Map<string, number>()
    for (const { id, value } of await records.list(kinds.fresh, { limit: maxNewGroups })) {
      const firstMs = typeof value === 'number' ? value : 0
      if (nowMs - firstMs <= maxNewMs) groups.set(id, firstMs)
      else await records.remove(kinds.fresh, id)
    }
    return groups
  }

  /** Adds further failures. Returns what is known then. */
  async addSeen(fingerprint: string, fresh: Seen): Promise<Seen> {
    const { records } = this.#store
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const record = await records.get(kinds.seen, fingerprint)
      const all = record ? mergeSeen(readSeen(record.value), fresh) : fresh
      // Before the failures are written, so that a crash in between loses no new group.
      if (!record) await records.put(kinds.fresh, fingerprint, toMs(fresh.firstAt), 0)
      const result = await records.put(
        kinds.seen,
        fingerprint,
        writeSeen(all),
        record?.version ?? 0,
      )
      if (result === 'written') return all
    }
    throw new RedriveError(
      'VERSION_CONFLICT',
      `the record of group ${fingerprint} kept changing: it is written later`,
    )
  }

  async removeSeen(fingerprint: string): Promise<void> {
    await this.#store.records.remove(kinds.seen, fingerprint)
    await this.#store.records.remove(kinds.fresh, fingerprint)
  }
}

function stateOf(value: Json): GroupState {
  return value as unknown as GroupState
}
