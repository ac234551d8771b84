import { letterToJson, payloadToJson } from '../../letter/schema.ts'
import type { DocumentRecord, Store, StoredLetter } from '../../store.ts'
import { toCanonicalJson } from './digest.ts'

/** Records that are not copied: workers, and the state of a copy. */
const ownKinds = new Set(['worker', 'copy'])
/** The readable part of letters that are damaged in the source. */
const damagedKind = 'damaged'

const pageRecords = 100

/** Records of one kind. */
interface RecordPage {
  kind: string
  records: DocumentRecord[]
}

/** Reads all records that are copied, page by page. */
async function* readRecordPages(store: Store): AsyncGenerator<RecordPage> {
  for (const kind of await store.records.kinds()) {
    if (ownKinds.has(kind)) continue
    let after: string | undefined
    do {
      const from = after === undefined ? {} : { after }
      const records = await store.records.list(kind, { ...from, limit: pageRecords })
      if (records.length > 0) yield { kind, records }
      after = records.length === pageRecords ? records.at(-1)!.id : undefined
    } while (after !== undefined)
  }
}

/**
 * Writes records that are missing or different in the target. Returns the number of all records.
 */
export async function copyRecords(from: Store, to: Store): Promise<number> {
  let count = 0
  for await (const { kind, records } of readRecordPages(from)) {
    const existing = await readSame(to, kind, records)
    await Promise.all(
      records.map(async ({ id, value }) => {
        const old = existing.get(id)
        if (old && toCanonicalJson(old.value) === toCanonicalJson(value)) return
        await to.records.put(kind, id, value, old?.version ?? 0)
      }),
    )
    count += records.length
  }
  return count
}

/** The records of another store with the ids of these, by id. */
async function readSame(
  store: Store,
  kind: string,
  records: readonly DocumentRecord[],
): Promise<Map<string, DocumentRecord>> {
  const ids = records.map(({ id }) => id)
  const found = await store.records.list(kind, { ids })
  return new Map(found.map((record) => [record.id, record]))
}

/** Stores the readable part of damaged letters as records: as letters they would look intact. */
export async function saveDamaged(to: Store, damaged: readonly StoredLetter[]): Promise<void> {
  for (const { letter, original } of damaged) {
    const value = {
      letter: letterToJson(letter),
      ...(original ? { original: payloadToJson(original) } : {}),
    }
    await to.records.put(damagedKind, letter.id, value)
  }
}

/** Reports each record that differs, with the reason. Returns the number of equal records. */
export async function compareRecords(
  from: Store,
  to: Store,
  differs: (name: string, why: string) => void,
): Promise<number> {
  let same = 0
  for await (const { kind, records } of readRecordPages(from)) {
    const existing = await readSame(to, kind, records)
    for (const { id, value } of records) {
      const other = existing.get(id)
      if (!other) differs(`${kind} ${id}`, 'missing in the target')
      else if (toCanonicalJson(other.value) !== toCanonicalJson(value))
        differs(`${kind} ${id}`, 'not the same in the target')
      else same += 1
    }
  }
  for await (const { kind, records } of readRecordPages(to)) {
    if (kind === damagedKind) continue
    const existing = await readSame(from, kind, records)
    for (const { id } of records)
      if (!existing.has(id)) differs(`${kind} ${id}`, 'only in the target')
  }
  return same
}
