import { toCanonicalJson } from '../../letter/canonical-json.ts'
import { letterToJson, payloadToJson } from '../../letter/schema.ts'
import type { DocumentRecord, Store, StoredLetter } from '../../store.ts'

/** Records that are not copied: workers, and the state of a copy. */
const ownKinds = new Set(['worker', 'copy'])
/** The readable part of letters that are damaged in the source. */
const damagedKind = 'damaged'

const pageRecords = 100

interface KindedRecord extends DocumentRecord {
  kind: string
}

/** Reads all records that are copied, page by page. */
async function* readRecordPages(store: Store): AsyncGenerator<KindedRecord[]> {
  for (const kind of await store.records.kinds()) {
    if (ownKinds.has(kind)) continue
    let after: string | undefined
    do {
      const from = after === undefined ? {} : { after }
      const page = await store.records.list(kind, { ...from, limit: pageRecords })
      if (page.length > 0) yield page.map((record) => ({ ...record, kind }))
      after = page.length === pageRecords ? page.at(-1)!.id : undefined
    } while (after !== undefined)
  }
}

/**
 * Writes records that are missing or different in the target. Returns the number of all records.
 */
export async function copyRecords(from: Store, to: Store): Promise<number> {
  let count = 0
  for await (const page of readRecordPages(from)) {
    await Promise.all(page.map((record) => copyRecord(to, record)))
    count += page.length
  }
  return count
}

async function copyRecord(to: Store, { kind, id, value }: KindedRecord): Promise<void> {
  const existing = await to.records.get(kind, id)
  if (existing && toCanonicalJson(existing.value) === toCanonicalJson(value)) return
  await to.records.put(kind, id, value, existing?.version ?? 0)
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
  for await (const page of readRecordPages(from))
    for (const { kind, id, value } of page) {
      const existing = await to.records.get(kind, id)
      if (!existing) differs(`${kind} ${id}`, 'missing in the target')
      else if (toCanonicalJson(existing.value) !== toCanonicalJson(value))
        differs(`${kind} ${id}`, 'not the same in the target')
      else same += 1
    }
  for await (const page of readRecordPages(to))
    for (const { kind, id } of page)
      if (kind !== damagedKind && !(await from.records.get(kind, id)))
        differs(`${kind} ${id}`, 'only in the target')
  return same
}
