// What letters were before they were edited, so that an edit can be undone: records of the store.
import { isDeepStrictEqual } from 'node:util'
import type { DeadLetter, HistoryEntry, Json } from '../letter/letter.ts'
import type { DocumentRecord, Store } from '../store.ts'

const kind = 'edit'
/** Records that are looked at together. They may be as large as payloads. */
const pageSize = 100
const versionDigits = 10

/**
 * Before the letter of this version is edited. Somebody else may be about to edit the same version, and only one of them will: the
 * record has what either would change.
 */
export async function keepEdit(
  store: Store,
  letter: DeadLetter,
  before: { [key: string]: Json },
): Promise<void> {
  const id = idOf(letter)
  for (let written = false; !written;) {
    const there = await store.records.get(kind, id)
    const value = { ...(there?.value as typeof before | undefined), ...before }
    written = (await store.records.put(kind, id, value, there?.version ?? 0)) === 'written'
  }
}

export async function newestEdit(store: Store, id: string): Promise<DocumentRecord | undefined> {
  let newest: DocumentRecord | undefined
  for await (const edit of editsOf(store, id)) newest = edit
  return newest
}

/**
 * The letter of this version was not edited after all: something else was done to it first. If that was an edit, the record is that of
 * whoever made it.
 */
export async function dropUnmade(store: Store, letter: DeadLetter): Promise<void> {
  const [now] = await store.get([letter.id])
  if (now && isDeepStrictEqual(editsIn(now), editsIn(letter))) await dropEdit(store, idOf(letter))
}

function editsIn({ history }: DeadLetter): HistoryEntry[] {
  return history.filter(({ action }) => action === 'edit')
}

/** It was undone. */
export async function dropEdit(store: Store, edit: string): Promise<void> {
  await store.records.remove(kind, edit)
}

/** The letter is gone, and all that it ever was. */
export async function forgetEdits(store: Store, id: string): Promise<void> {
  for await (const edit of editsOf(store, id)) await dropEdit(store, edit.id)
}

/** Forgets the edits of letters that are gone, among the next so many. Gives where the next look goes on, or begins. */
export async function forgetOrphanedEdits(
  store: Store,
  after: string | undefined,
): Promise<string | undefined> {
  const edits = await store.records.list(kind, { limit: pageSize, ...from(after) })
  const ids = [...new Set(edits.map(letterOf))]
  if (ids.length === 0) return undefined
  const { items } = await store.find({ ids, limit: ids.length })
  const unseen = new Set(ids)
  for (const letter of items) unseen.delete(letter.id)
  // A search may be behind; this is not.
  for (const letter of unseen.size > 0 ? await store.get([...unseen]) : []) unseen.delete(letter.id)
  for (const edit of edits) if (unseen.has(letterOf(edit))) await dropEdit(store, edit.id)
  return edits.length < pageSize ? undefined : edits.at(-1)?.id
}

/** From the oldest on. */
async function* editsOf(store: Store, id: string): AsyncGenerator<DocumentRecord> {
  for (let after: string | undefined; ;) {
    const edits = await store.records.list(kind, {
      prefix: `${id}:`,
      limit: pageSize,
      ...from(after),
    })
    yield* edits
    if (edits.length < pageSize) return
    after = edits.at(-1)?.id
  }
}

function idOf({ id, version }: DeadLetter): string {
  return `${id}:${String(version).padStart(versionDigits, '0')}`
}

function letterOf({ id }: DocumentRecord): string {
  return id.slice(0, -versionDigits - 1)
}

function from(after: string | undefined): { after?: string } {
  return after === undefined ? {} : { after }
}
