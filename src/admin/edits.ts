// Values of letters before each edit, stored as records so that an edit can be undone.
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../clock/clock.ts'
import type { DeadLetter, HistoryEntry, Json } from '../letter/letter.ts'
import type { DocumentRecord, Store } from '../store.ts'

const kind = 'edit'
/** Records per page. A record may be as large as a payload. */
const pageSize = 100
const versionDigits = 10
/** Interval of the search for orphaned edits: reading records is costly, and orphans are rare. */
const orphansEveryMs = 60_000

/**
 * Saves the values that an edit of this version is about to replace. If two people edit the same
 * version, only one edit is written; the record then holds the values of both.
 */
export async function saveEdit(
  store: Store,
  letter: DeadLetter,
  before: { [key: string]: Json },
): Promise<void> {
  const id = recordId(letter)
  for (let written = false; !written;) {
    const existing = await store.records.get(kind, id)
    const value = { ...(existing?.value as typeof before | undefined), ...before }
    written = (await store.records.put(kind, id, value, existing?.version ?? 0)) === 'written'
  }
}

export async function findNewestEdit(
  store: Store,
  letterId: string,
): Promise<DocumentRecord | undefined> {
  let newest: DocumentRecord | undefined
  for await (const edit of listEdits(store, letterId)) newest = edit
  return newest
}

/** The record of the edit of this version of a letter. */
export function findEdit(
  store: Store,
  letterId: string,
  version: number,
): Promise<DocumentRecord | undefined> {
  return store.records.get(kind, recordId({ id: letterId, version }))
}

/** Removes the record of an edit that was not written, unless another edit of that version was. */
export async function removeUnusedEdit(store: Store, letter: DeadLetter): Promise<void> {
  const [now] = await store.get([letter.id])
  if (now && isDeepStrictEqual(editEntries(now), editEntries(letter)))
    await removeEdit(store, recordId(letter))
}

function editEntries({ history }: DeadLetter): HistoryEntry[] {
  return history.filter(({ action }) => action === 'edit')
}

/** Removes the record of the edit of this version of a letter. */
export async function removeEditOf(store: Store, id: string, version: number): Promise<void> {
  await removeEdit(store, recordId({ id, version }))
}

export async function removeEdit(store: Store, id: string): Promise<void> {
  await store.records.remove(kind, id)
}

/** Removes all edits of a letter that no longer exists. */
export async function removeEdits(store: Store, letterId: string): Promise<void> {
  for await (const edit of listEdits(store, letterId)) await removeEdit(store, edit.id)
}

/**
 * A chore of the sweep: once a minute, removes the edits of letters that no longer exist, one page
 * at a time.
 */
export function removeOrphanedEdits(): (context: { store: Store; clock: Clock }) => Promise<void> {
  let after: string | undefined
  let checkedMs = -Infinity
  return async function removeOrphanedEdits({ store, clock }) {
    if (clock.mono() - checkedMs < orphansEveryMs) return
    after = await removeOrphansAfter(store, after)
    checkedMs = clock.mono()
  }
}

/** Checks one page. Returns where the next page starts, or undefined after the last one. */
async function removeOrphansAfter(
  store: Store,
  after: string | undefined,
): Promise<string | undefined> {
  const edits = await store.records.list(kind, { limit: pageSize, ...startAfter(after) })
  const ids = [...new Set(edits.map(letterIdOf))]
  if (ids.length === 0) return undefined
  const { items } = await store.find({ ids, limit: ids.length })
  const missing = new Set(ids)
  for (const letter of items) missing.delete(letter.id)
  // A search index may lag behind; `get` does not.
  if (missing.size > 0)
    for (const letter of await store.get([...missing])) missing.delete(letter.id)
  for (const edit of edits) if (missing.has(letterIdOf(edit))) await removeEdit(store, edit.id)
  return edits.length < pageSize ? undefined : edits.at(-1)?.id
}

/** Edits of a letter, the oldest first. */
export async function* listEdits(store: Store, letterId: string): AsyncGenerator<DocumentRecord> {
  for (let after: string | undefined; ;) {
    const page = { prefix: `${letterId}:`, limit: pageSize, ...startAfter(after) }
    const edits = await store.records.list(kind, page)
    yield* edits
    if (edits.length < pageSize) return
    after = edits.at(-1)?.id
  }
}

function recordId({ id, version }: Pick<DeadLetter, 'id' | 'version'>): string {
  return `${id}:${String(version).padStart(versionDigits, '0')}`
}

function letterIdOf({ id }: DocumentRecord): string {
  return id.slice(0, -versionDigits - 1)
}

function startAfter(after: string | undefined): { after?: string } {
  return after === undefined ? {} : { after }
}
