// The audit log as records, so that every store supports it.
import { RedriveError } from '../../errors.ts'
import type { AuditEntry, AuditPosition } from '../../letter/audit.ts'
import type { Json } from '../../letter/letter.ts'
import type { DocumentRecord, Store } from '../../store.ts'
import { genesis, link, type AuditDraft } from './chain.ts'

const kinds = {
  /** Entries that were written together. The id is the number of the first one. */
  entries: 'audit',
  /** `head`: the last entry. `pruned`: the last entry that a prune removed. */
  position: 'audit-position',
} as const

/** Entries of one record. */
export const maxBatch = 100
const pageRecords = 200
const seqDigits = 12
/** Attempts of an append when other processes append at the same time. */
const maxAttempts = 100

interface StoredPosition extends AuditPosition {
  version: number
}

/** A record as it is stored: its entries, or none if it cannot be read. */
export interface AuditBatch {
  id: string
  entries: AuditEntry[]
}

export class AuditRecords {
  readonly #store: Pick<Store, 'records'>

  constructor(store: Pick<Store, 'records'>) {
    this.#store = store
  }

  get #records(): Store['records'] {
    return this.#store.records
  }

  /**
   * Appends entries. The record of the entries is created under the next number, which only one
   * process can do; then the head moves. If a process ends in between, the next one moves the head.
   */
  async append(drafts: readonly AuditDraft[]): Promise<AuditEntry[]> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { seq, hash, version } = await this.#base()
      const entries = link({ seq, hash }, drafts)
      const value = { entries } as unknown as Json
      const created = await this.#records.put(kinds.entries, idOf(seq + 1), value, 0)
      if (created === 'written') {
        // The entries are stored; a head that does not move now moves with the next append.
        await this.#move('head', entries.at(-1)!, version).catch(() => 'conflict')
        return entries
      }
      const batches = await this.#batchesAfter(seq)
      const last = batches.at(-1)
      if (last) await this.#move('head', endOf(last), version)
      // A write whose answer was lost, and that the store has repeated.
      if (batches[0]?.entries.at(-1)?.hash === entries.at(-1)!.hash) return entries
    }
    throw new RedriveError(
      'VERSION_CONFLICT',
      'other processes kept appending to the audit log: try again',
    )
  }

  /** The last entry according to the record of the head. */
  async head(): Promise<StoredPosition | undefined> {
    return positionOf(await this.#records.get(kinds.position, 'head'))
  }

  /** The last entry that was removed by a prune. */
  async pruned(): Promise<StoredPosition | undefined> {
    return positionOf(await this.#records.get(kinds.position, 'pruned'))
  }

  /** The number of the last entry, also if the head has not moved yet. */
  async lastSeq(): Promise<number> {
    const { seq } = await this.#base()
    const last = (await this.#batchesAfter(seq)).at(-1)
    return last ? endOf(last).seq : seq
  }

  /** The readable entries after one number, up to another one. */
  async range(after: number, through: number): Promise<AuditEntry[]> {
    const page = { after: idOf(Math.max(0, after - maxBatch)), limit: through - after + maxBatch }
    const records = await this.#records.list(kinds.entries, page)
    return records
      .flatMap((record) => batchOf(record).entries)
      .filter(({ seq }) => seq > after && seq <= through)
  }

  /** The records after this entry, a page at a time. */
  async *pages(after: number): AsyncGenerator<AuditBatch[]> {
    for (let from = idOf(after); ;) {
      const page = { after: from, limit: pageRecords }
      const records = await this.#records.list(kinds.entries, page)
      if (records.length > 0) yield records.map(batchOf)
      if (records.length < pageRecords) return
      from = records.at(-1)!.id
    }
  }

  /**
   * Removes the oldest records whose entries are all `isOld`, except the last record. A position is
   * written before the records are removed, so that the rest can be verified.
   */
  async prune(isOld: (entry: AuditEntry) => boolean): Promise<number> {
    let removed = 0
    const lastSeq = await this.lastSeq()
    for await (const page of this.pages(0)) {
      const end = page.findIndex(
        ({ entries }) =>
          entries.length === 0 || entries.at(-1)!.seq >= lastSeq || !entries.every(isOld),
      )
      const old = end < 0 ? page : page.slice(0, end)
      if (old.length > 0) await this.#movePruned(endOf(old.at(-1)!))
      for (const { id, entries } of old) {
        await this.#records.remove(kinds.entries, id)
        removed += entries.length
      }
      if (end >= 0) break
    }
    return removed
  }

  async #movePruned(to: AuditPosition): Promise<void> {
    const pruned = await this.pruned()
    // A prune that was interrupted has left records before this position.
    if (pruned && pruned.seq >= to.seq) return
    if ((await this.#move('pruned', to, pruned?.version ?? 0)) === 'written') return
    throw new RedriveError(
      'VERSION_CONFLICT',
      'another process removes old entries of the audit log: try again',
    )
  }

  /** Where an append starts. Without a head, the entries that are stored follow from here. */
  async #base(): Promise<StoredPosition> {
    return (await this.head()) ?? { ...((await this.pruned()) ?? genesis), version: 0 }
  }

  async #batchesAfter(seq: number): Promise<AuditBatch[]> {
    const batches: AuditBatch[] = []
    for await (const page of this.pages(seq)) batches.push(...page)
    return batches.filter(({ id }) => isId(id))
  }

  async #move(
    id: 'head' | 'pruned',
    { seq, hash }: AuditPosition,
    version: number,
  ): Promise<'written' | 'conflict'> {
    return this.#records.put(kinds.position, id, { seq, hash }, version)
  }
}

export function idOf(seq: number): string {
  return String(seq).padStart(seqDigits, '0')
}

/** Whether a record has an id of this log. A check reports other records. */
function isId(id: string): boolean {
  return /^\d{12}$/.test(id)
}

/** The last entry of a batch. One that cannot be read counts as one entry without a hash. */
function endOf({ id, entries }: AuditBatch): AuditPosition {
  const { seq, hash } = entries.at(-1) ?? { seq: Number.parseInt(id, 10), hash: '' }
  return { seq, hash }
}

function batchOf({ id, value }: DocumentRecord): AuditBatch {
  const { entries } = Object(value) as { entries?: unknown }
  const isReadable = Array.isArray(entries) && entries.every(isEntry)
  return { id, entries: isReadable ? (entries as AuditEntry[]) : [] }
}

function isEntry(value: unknown): boolean {
  const { seq, hash, prevHash } = Object(value) as Record<string, unknown>
  return Number.isSafeInteger(seq) && typeof hash === 'string' && typeof prevHash === 'string'
}

function positionOf(record: DocumentRecord | undefined): StoredPosition | undefined {
  const { seq, hash } = Object(record?.value) as Record<string, unknown>
  if (!record || !Number.isSafeInteger(seq) || typeof hash !== 'string') return undefined
  return { seq: seq as number, hash, version: record.version }
}
