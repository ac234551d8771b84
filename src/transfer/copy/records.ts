import type { Json } from '../../letter/letter.ts'
import { letterToJson } from '../../letter/schema.ts'
import type { DocumentRecord, Store, StoredLetter } from '../../store.ts'
import { canonical } from './digest.ts'

/** Records that belong to a store itself: who works on it, and what it is a copy of. */
const ownKinds = new Set(['worker', 'copy'])
/** What can still be read of letters that were damaged in the source. */
const damagedKind = 'damaged'

const pageRecords = 100

interface Found extends DocumentRecord {
  kind: string
}

/** All records of a store that move with it, page by page. */
async function* recordPages(store: Store): AsyncGenerator<Found[]> {
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

/** Writes what the target lacks or has otherwise. Answers how many there are. */
export async function copyRecords(from: Store, to: Store): Promise<number> {
  let count = 0
  for await (const page of recordPages(from)) {
    await Promise.all(page.map((record) => copyRecord(to, record)))
    count += page.length
  }
  return count
}

async function copyRecord(to: Store, { kind, id, value }: Found): Promise<void> {
  const there = await to.records.get(kind, id)
  if (there && canonical(there.value) === canonical(value)) return
  await to.records.put(kind, id, value, there?.version ?? 0)
}

/** Keeps what can be read of damaged letters; as letters they would pass for sound. */
export async function putAside(to: Store, damaged: readonly StoredLetter[]): Promise<void> {
  for (const { letter, original } of damaged) {
    const told = { letter: letterToJson(letter), ...(original ? { original: text(original) } : {}) }
    await to.records.put(damagedKind, letter.id, told as unknown as Json)
  }
}

function text({ bytes, ...facts }: NonNullable<StoredLetter['original']>): unknown {
  return { ...facts, bytes: Buffer.from(bytes).toString('base64') }
}

/** Names of records that are not the same, each with why, and how many are. */
export async function compareRecords(
  from: Store,
  to: Store,
  differs: (name: string, why: string) => void,
): Promise<number> {
  let same = 0
  for await (const page of recordPages(from))
    for (const { kind, id, value } of page) {
      const there = await to.records.get(kind, id)
      if (!there) differs(`${kind} ${id}`, 'missing in the target')
      else if (canonical(there.value) !== canonical(value))
        differs(`${kind} ${id}`, 'not the same in the target')
      else same += 1
    }
  for await (const page of recordPages(to))
    for (const { kind, id } of page)
      if (kind !== damagedKind && !(await from.records.get(kind, id)))
        differs(`${kind} ${id}`, 'only in the target')
  return same
}
