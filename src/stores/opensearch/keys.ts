import { isOpen, type DeadLetter } from '../../letter/letter.ts'
import { documentOf, type Kept, type Light } from './document.ts'
import { hashOf } from './fields.ts'
import {
  isDone,
  lettersNow,
  withDrafts,
  type Desk,
  type Entry,
  type KeyDocument,
  type Standing,
} from './desk.ts'
import type { Found, Write } from './shelf.ts'
import { crowded, maxTries } from './tries.ts'

type Keyed = Pick<DeadLetter, 'queue' | 'dedupeKey'>

export function keyOf({ queue, dedupeKey }: Keyed): string {
  return `key:${hashOf(queue, dedupeKey!)}`
}

/** The open letters among the entries of a key, oldest first, and the entries that can still matter. */
async function holdersOf(
  desk: Desk,
  found: Found<KeyDocument> | undefined,
): Promise<{ open: Standing[]; entries: Entry[] }> {
  const noted = found?.source.entries ?? []
  const letters = await withDrafts(
    desk,
    noted.map(({ id }) => id),
  )
  const isSame = ({ id, birth }: Entry): boolean => letters.get(id)?.kept.birth === birth
  // A letter that is done stays so; one that was archived before may come back, and then holds its key again.
  const entries = noted.filter(
    (entry) => isSame(entry) && !isDone(letters.get(entry.id)!.kept.letter),
  )
  const open = entries
    .map(({ id }) => letters.get(id)!)
    .filter(({ kept }) => isOpen(kept.letter.state))
    .sort((a, b) => (a.kept.letter.id < b.kept.letter.id ? -1 : 1))
  return { open, entries }
}

/** The oldest open letter that holds this key. A draft that is named has its key, and is made a letter on the way. */
export async function holderOf(desk: Desk, keyed: Keyed): Promise<Standing | undefined> {
  for (let tries = 0; tries < maxTries; tries++) {
    const key = keyOf(keyed)
    const { open } = await holdersOf(desk, (await desk.keys.read([key])).get(key))
    const [first] = open
    if (!first || first.kept.draftMs === undefined) return first
    await finishDraft(desk, first)
  }
  throw crowded('a dedupeKey')
}

/**
 * A draft becomes a letter once its key names it, and gives way when an open letter has the key. Whoever meets a draft
 * may do this, also for one whose process has died: all who try come to the same end.
 */
export async function finishDraft(desk: Desk, draft: Standing): Promise<'born' | 'gone'> {
  const { letter, birth } = draft.kept
  const key = keyOf(letter)
  for (let tries = 0; tries < maxTries; tries++) {
    const found = (await desk.keys.read([key])).get(key)
    const isNamed = found?.source.entries.some((entry) => entry.birth === birth)
    if (isNamed) return beBorn(desk, draft)
    const { open, entries } = await holdersOf(desk, found)
    if (open.length > 0) {
      await desk.letters.write([{ id: letter.id, drop: true, at: draft.mark }])
      return (await lettersNow(desk, [letter.id])).get(letter.id)?.kept.birth === birth
        ? 'born'
        : 'gone'
    }
    const put: KeyDocument = {
      kind: 'key',
      entries: [...entries, { id: letter.id, birth: birth! }],
    }
    const [named] = await desk.keys.write([{ id: key, put, at: found?.mark ?? 'new' }])
    if (named!.done) return beBorn(desk, draft)
  }
  throw crowded('a dedupeKey')
}

async function beBorn(desk: Desk, { kept, mark }: Standing): Promise<'born' | 'gone'> {
  const { draftMs: _, ...born } = kept
  const { id } = kept.letter
  const [written] = await desk.letters.write([{ id, put: documentOf(born), at: mark }])
  if (written!.done) return 'born'
  // Someone else was faster, in one way or the other.
  return (await lettersNow(desk, [id])).get(id)?.kept.birth === kept.birth ? 'born' : 'gone'
}

/** Notes a letter under its key, whoever else is: for letters that come from another store. */
export async function nameKey(desk: Desk, { letter, birth }: Kept): Promise<void> {
  const key = keyOf(letter)
  for (let tries = 0; tries < maxTries; tries++) {
    const found = (await desk.keys.read([key])).get(key)
    const entries = found?.source.entries ?? []
    const put: KeyDocument = {
      kind: 'key',
      entries: [...entries, { id: letter.id, birth: birth! }],
    }
    const [written] = await desk.keys.write([{ id: key, put, at: found?.mark ?? 'new' }])
    if (written!.done) return
  }
  throw crowded('a dedupeKey')
}

/** Forgets letters that are gone, so that keys which are used once do not gather for ever. Failing does no harm. */
export async function forgetKeys(desk: Desk, gone: readonly Light[]): Promise<void> {
  const keyed = gone.filter(({ letter }) => letter.dedupeKey !== undefined)
  const found = await desk.keys.read(keyed.map(({ letter }) => keyOf(letter)))
  const births = new Set(keyed.map(({ birth }) => birth))
  const writes = [...found.values()].map(({ id, mark, source }): Write<KeyDocument> => {
    const entries = source.entries.filter(({ birth }) => !births.has(birth))
    return entries.length > 0
      ? { id, put: { kind: 'key', entries }, at: mark }
      : { id, drop: true, at: mark }
  })
  await desk.keys.write(writes)
}
