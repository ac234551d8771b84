import { isDone, isOpen, type DeadLetter } from '../../letter/letter.ts'
import { documentOf, type LetterRecord, type LightRecord } from './document.ts'
import { hashOf } from './fields.ts'
import {
  readLetters,
  readWithDrafts,
  type StoreContext,
  type KeyDocument,
  type KeyEntry,
  type ReadLetter,
} from './context.ts'
import type { ReadDocument, Write } from './document-index.ts'
import { contentionError, maxAttempts } from './contention.ts'

type Keyed = Pick<DeadLetter, 'queue' | 'dedupeKey'>

/** The id of the document of a dedupeKey. */
export function keyOf({ queue, dedupeKey }: Keyed): string {
  return `key:${hashOf(queue, dedupeKey!)}`
}

/** The open letters of a key, oldest first, and the entries whose letters are not resolved. */
async function readHolders(
  context: StoreContext,
  document: ReadDocument<KeyDocument> | undefined,
): Promise<{ open: ReadLetter[]; entries: KeyEntry[] }> {
  const all = document?.source.entries ?? []
  const letters = await readWithDrafts(
    context,
    all.map(({ id }) => id),
  )
  // A resolved letter stays resolved. An archived letter stays an entry: it may be restored, and
  // then holds its key again.
  const entries = all.filter(({ id, birth }) => {
    const record = letters.get(id)?.record
    return record?.birth === birth && !isDone(record.letter)
  })
  const open = entries
    .map(({ id }) => letters.get(id)!)
    .filter(({ record }) => isOpen(record.letter.state))
    .sort((a, b) => (a.record.letter.id < b.record.letter.id ? -1 : 1))
  return { open, entries }
}

/** Finds the oldest open letter of a key. Finishes a draft that the key names. */
export async function findKeyHolder(
  context: StoreContext,
  keyed: Keyed,
): Promise<ReadLetter | undefined> {
  const key = keyOf(keyed)
  for (let tries = 0; tries < maxAttempts; tries++) {
    const { open } = await readHolders(context, await context.keys.readOne(key))
    const [first] = open
    if (!first || first.record.draftMs === undefined) return first
    await finishDraft(context, first)
  }
  throw contentionError('a dedupeKey')
}

/**
 * Publishes a draft as a letter once its key names the draft, or drops the draft if another open
 * letter has the key. Returns whether the draft was published. Any process that reads a draft may
 * finish it, also after the process that wrote it has died: all reach the same result.
 */
export async function finishDraft(context: StoreContext, draft: ReadLetter): Promise<boolean> {
  const { record, revision } = draft
  const { letter, birth } = record
  const key = keyOf(letter)
  for (let tries = 0; tries < maxAttempts; tries++) {
    const document = await context.keys.readOne(key)
    const isNamed = document?.source.entries.some((entry) => entry.birth === birth)
    if (isNamed) return publishDraft(context, draft)
    const { open, entries } = await readHolders(context, document)
    if (open.length > 0) {
      await context.letters.write([{ id: letter.id, drop: true, expected: revision }])
      return isPublished(context, record)
    }
    if (await appendEntry(context, document, entries, record)) return publishDraft(context, draft)
  }
  throw contentionError('a dedupeKey')
}

async function publishDraft(
  context: StoreContext,
  { record, revision }: ReadLetter,
): Promise<boolean> {
  const { draftMs: _, ...published } = record
  const { id } = record.letter
  const put = documentOf(published)
  const [written] = await context.letters.write([{ id, put, expected: revision }])
  // After a conflict, another process has published or dropped the draft.
  return written!.done || isPublished(context, record)
}

async function isPublished(
  context: StoreContext,
  { letter: { id }, birth }: LetterRecord,
): Promise<boolean> {
  return (await readLetters(context, [id])).get(id)?.record.birth === birth
}

/** Writes a key with a further entry. Returns false if the key was changed concurrently. */
async function appendEntry(
  context: StoreContext,
  document: ReadDocument<KeyDocument> | undefined,
  entries: readonly KeyEntry[],
  { letter, birth }: LetterRecord,
): Promise<boolean> {
  const put: KeyDocument = { kind: 'key', entries: [...entries, { id: letter.id, birth: birth! }] }
  const [written] = await context.keys.write([
    { id: keyOf(letter), put, expected: document?.revision ?? 'new' },
  ])
  return written!.done
}

/** Adds a letter of another store to its key, even if another open letter has the key. */
export async function addToKey(context: StoreContext, record: LetterRecord): Promise<void> {
  for (let tries = 0; tries < maxAttempts; tries++) {
    const document = await context.keys.readOne(keyOf(record.letter))
    if (await appendEntry(context, document, document?.source.entries ?? [], record)) return
  }
  throw contentionError('a dedupeKey')
}

/**
 * Removes deleted letters from their keys, so that keys used once do not accumulate. A conflict
 * does no harm: the entry is ignored.
 */
export async function removeFromKeys(
  context: StoreContext,
  removed: readonly LightRecord[],
): Promise<void> {
  const keyed = removed.filter(({ letter }) => letter.dedupeKey !== undefined)
  const documents = await context.keys.read(keyed.map(({ letter }) => keyOf(letter)))
  const births = new Set(keyed.map(({ birth }) => birth))
  const writes = [...documents.values()].map(({ id, revision, source }): Write<KeyDocument> => {
    const entries = source.entries.filter(({ birth }) => !births.has(birth))
    return entries.length > 0
      ? { id, put: { kind: 'key', entries }, expected: revision }
      : { id, drop: true, expected: revision }
  })
  await context.keys.write(writes)
}
