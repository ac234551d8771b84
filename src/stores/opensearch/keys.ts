import { isDone, isOpen, type DeadLetter } from '../../letter/letter.ts'
import { documentOf, type LetterRecord, type Light } from './document.ts'
import { hashOf } from './fields.ts'
import {
  readLetters,
  readWithDrafts,
  type StoreContext,
  type Entry,
  type KeyDocument,
  type ReadLetter,
} from './context.ts'
import type { Found, Write } from './document-index.ts'
import { contentionError, maxAttempts } from './contention.ts'

type Keyed = Pick<DeadLetter, 'queue' | 'dedupeKey'>

export function keyOf({ queue, dedupeKey }: Keyed): string {
  return `key:${hashOf(queue, dedupeKey!)}`
}

/** The open letters among the entries of a key, oldest first, and the entries that still matter. */
async function holdersOf(
  context: StoreContext,
  found: Found<KeyDocument> | undefined,
): Promise<{ open: ReadLetter[]; entries: Entry[] }> {
  const noted = found?.source.entries ?? []
  const letters = await readWithDrafts(
    context,
    noted.map(({ id }) => id),
  )
  const isSame = ({ id, birth }: Entry): boolean => letters.get(id)?.record.birth === birth
  // A resolved letter stays resolved; one that was archived before may be restored, and then holds
  // its key again.
  const entries = noted.filter(
    (entry) => isSame(entry) && !isDone(letters.get(entry.id)!.record.letter),
  )
  const open = entries
    .map(({ id }) => letters.get(id)!)
    .filter(({ record }) => isOpen(record.letter.state))
    .sort((a, b) => (a.record.letter.id < b.record.letter.id ? -1 : 1))
  return { open, entries }
}

/**
 * The oldest open letter that holds this key. A draft named by the key becomes a letter on the way.
 */
export async function holderOf(
  context: StoreContext,
  keyed: Keyed,
): Promise<ReadLetter | undefined> {
  for (let tries = 0; tries < maxAttempts; tries++) {
    const key = keyOf(keyed)
    const { open } = await holdersOf(context, (await context.keys.read([key])).get(key))
    const [first] = open
    if (!first || first.record.draftMs === undefined) return first
    await finishDraft(context, first)
  }
  throw contentionError('a dedupeKey')
}

/**
 * A draft becomes a letter once its key names it, and is dropped if an open letter has the key. Any
 * process that finds a draft may do this, even if its own process has died: all come to the same
 * result.
 */
export async function finishDraft(
  context: StoreContext,
  draft: ReadLetter,
): Promise<'born' | 'gone'> {
  const { letter, birth } = draft.record
  const key = keyOf(letter)
  for (let tries = 0; tries < maxAttempts; tries++) {
    const found = (await context.keys.read([key])).get(key)
    const isNamed = found?.source.entries.some((entry) => entry.birth === birth)
    if (isNamed) return beBorn(context, draft)
    const { open, entries } = await holdersOf(context, found)
    if (open.length > 0) {
      await context.letters.write([{ id: letter.id, drop: true, at: draft.mark }])
      return (await readLetters(context, [letter.id])).get(letter.id)?.record.birth === birth
        ? 'born'
        : 'gone'
    }
    const put: KeyDocument = {
      kind: 'key',
      entries: [...entries, { id: letter.id, birth: birth! }],
    }
    const [named] = await context.keys.write([{ id: key, put, at: found?.mark ?? 'new' }])
    if (named!.done) return beBorn(context, draft)
  }
  throw contentionError('a dedupeKey')
}

async function beBorn(
  context: StoreContext,
  { record, mark }: ReadLetter,
): Promise<'born' | 'gone'> {
  const { draftMs: _, ...born } = record
  const { id } = record.letter
  const [written] = await context.letters.write([{ id, put: documentOf(born), at: mark }])
  if (written!.done) return 'born'
  // Another process was faster, in one way or the other.
  return (await readLetters(context, [id])).get(id)?.record.birth === record.birth ? 'born' : 'gone'
}

/**
 * Adds a letter to its key, whatever else the key has: for letters that come from another store.
 */
export async function addToKey(
  context: StoreContext,
  { letter, birth }: LetterRecord,
): Promise<void> {
  const key = keyOf(letter)
  for (let tries = 0; tries < maxAttempts; tries++) {
    const found = (await context.keys.read([key])).get(key)
    const entries = found?.source.entries ?? []
    const put: KeyDocument = {
      kind: 'key',
      entries: [...entries, { id: letter.id, birth: birth! }],
    }
    const [written] = await context.keys.write([{ id: key, put, at: found?.mark ?? 'new' }])
    if (written!.done) return
  }
  throw contentionError('a dedupeKey')
}

/**
 * Removes deleted letters from their keys, so that keys used once do not accumulate. A failure does
 * no harm.
 */
export async function forgetKeys(context: StoreContext, gone: readonly Light[]): Promise<void> {
  const keyed = gone.filter(({ letter }) => letter.dedupeKey !== undefined)
  const found = await context.keys.read(keyed.map(({ letter }) => keyOf(letter)))
  const births = new Set(keyed.map(({ birth }) => birth))
  const writes = [...found.values()].map(({ id, mark, source }): Write<KeyDocument> => {
    const entries = source.entries.filter(({ birth }) => !births.has(birth))
    return entries.length > 0
      ? { id, put: { kind: 'key', entries }, at: mark }
      : { id, drop: true, at: mark }
  })
  await context.keys.write(writes)
}
