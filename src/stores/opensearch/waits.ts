import { isDone } from '../../letter/letter.ts'
import { documentOf, type LetterRecord } from './document.ts'
import { readLightLetters, readWithDrafts, type StoreContext } from './context.ts'
import { isDue } from './due.ts'
import { finishDraft } from './keys.ts'

const pageSize = 500
/** The age from which a draft counts as left by a process that died. */
const abandonedMs = 60_000

/** Returns the ids of letters that are not resolved, or do not exist. */
export async function findUnresolved(
  context: StoreContext,
  ids: readonly string[],
): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const letters = await readLightLetters(context, ids)
  return new Set(
    ids.filter((id) => {
      const record = letters.get(id)?.record
      return !record || record.draftMs !== undefined || !isDone(record.letter)
    }),
  )
}

/**
 * Must be called after letters were written: frees the dependents of resolved letters, and wakes
 * watchers if letters are due.
 */
export async function propagateWrites(
  context: StoreContext,
  written: readonly LetterRecord[],
): Promise<void> {
  const waiting = written.filter(({ waitsFor }) => waitsFor.length > 0)
  if (waiting.length > 0)
    await recheckWaits(
      context,
      waiting.map(({ letter }) => letter.id),
    )
  const done = written.filter(({ letter }) => isDone(letter)).map(({ letter }) => letter.id)
  const freed = done.length > 0 ? await freeDependents(context, done) : 0
  const now = context.clock.now()
  if (freed > 0 || written.some(({ letter }) => isDue(letter, now))) context.wake()
}

/** Frees the letters that wait for these resolved ones. Returns how many were freed. */
export async function freeDependents(
  context: StoreContext,
  done: readonly string[],
): Promise<number> {
  let freed = 0
  for (let at = 0; at < done.length; at += pageSize) {
    const batch = done.slice(at, at + pageSize)
    for (;;) {
      await context.letters.refresh()
      const query = { terms: { waits_for: batch } }
      const hits = await context.letters.search({ query, size: pageSize, _source: false })
      if (hits.length === 0) break
      freed += await removeWaits(context, idsOf(hits), new Set(batch))
    }
  }
  return freed
}

/** Removes resolved letters from what the letters `ids` wait for. Returns how many were freed. */
async function removeWaits(
  context: StoreContext,
  ids: readonly string[],
  done: ReadonlySet<string>,
): Promise<number> {
  const writes = []
  let freed = 0
  for (const { record, revision } of (await readWithDrafts(context, ids)).values()) {
    const waitsFor = record.waitsFor.filter((id) => !done.has(id))
    const put = documentOf({ ...record, waitsFor })
    writes.push({ id: record.letter.id, put, expected: revision })
    if (waitsFor.length === 0 && record.waitsFor.length > 0) freed += 1
  }
  await context.letters.write(writes)
  return freed
}

/** Frees letters whose dependencies were resolved while the letters were being written. */
async function recheckWaits(context: StoreContext, ids: readonly string[]): Promise<void> {
  const waiting = await readLightLetters(context, ids)
  const dependencies = new Set([...waiting.values()].flatMap(({ record }) => record.waitsFor))
  const unresolved = await findUnresolved(context, [...dependencies])
  await freeDependents(
    context,
    [...dependencies].filter((id) => !unresolved.has(id)),
  )
}

/** Completes the work of processes that died: frees dependents, and finishes drafts. */
export async function recoverUnfinished(context: StoreContext): Promise<void> {
  await context.letters.refresh()
  for await (const hits of context.letters.pages({
    query: { exists: { field: 'waits_for' } },
    size: pageSize,
    _source: false,
    sort: [{ letter_id: 'asc' }],
  }))
    await recheckWaits(context, idsOf(hits))
  const query = { range: { draft_ms: { lt: context.clock.now() - abandonedMs } } }
  const hits = await context.letters.search({ query, size: pageSize, _source: false })
  for (const letter of (await readWithDrafts(context, idsOf(hits))).values())
    if (letter.record.draftMs !== undefined) await finishDraft(context, letter)
}

function idsOf(hits: readonly { id: string }[]): string[] {
  return hits.map(({ id }) => id)
}
