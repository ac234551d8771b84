import { isDone } from '../../letter/letter.ts'
import { documentOf } from './document.ts'
import { readLightLetters, readWithDrafts, type StoreContext } from './context.ts'
import { finishDraft } from './keys.ts'

const pageSize = 500
/** An older draft was left by a process that died. */
const abandonedMs = 60_000

/** The letters that are not resolved. */
export async function findUnresolved(
  context: StoreContext,
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return []
  const found = await readLightLetters(context, ids)
  return [...new Set(ids)].filter((id) => {
    const other = found.get(id)?.record
    return !other || other.draftMs !== undefined || !isDone(other.letter)
  })
}

/** Frees the letters that wait for these resolved ones. Returns how many were freed. */
export async function freeDependents(
  context: StoreContext,
  done: readonly string[],
): Promise<number> {
  let freed = 0
  for (let at = 0; at < done.length; at += pageSize) {
    const some = done.slice(at, at + pageSize)
    for (;;) {
      await context.letters.refresh()
      const query = { terms: { waits_for: some } }
      const { hits } = await context.letters.search({ query, size: pageSize, _source: false })
      if (hits.length === 0) break
      freed += await free(context, idsOf(hits), new Set(some))
    }
  }
  return freed
}

/** Removes resolved letters from what these letters wait for. */
async function free(
  context: StoreContext,
  ids: readonly string[],
  done: ReadonlySet<string>,
): Promise<number> {
  const writes = []
  let freed = 0
  for (const { record, mark } of (await readWithDrafts(context, ids)).values()) {
    const waitsFor = record.waitsFor.filter((id) => !done.has(id))
    const put = documentOf({ ...record, waitsFor })
    writes.push({ id: record.letter.id, put, at: mark })
    if (waitsFor.length === 0 && record.waitsFor.length > 0) freed += 1
  }
  await context.letters.write(writes)
  return freed
}

/** A letter was stored as waiting; what it waits for may have been resolved during the write. */
export async function recheckWaits(context: StoreContext, ids: readonly string[]): Promise<void> {
  const waiting = await readLightLetters(context, ids)
  const asked = [...waiting.values()].flatMap(({ record }) => record.waitsFor)
  const left = new Set(await findUnresolved(context, asked))
  const done = new Set(asked.filter((id) => !left.has(id)))
  if (done.size > 0) await freeDependents(context, [...done])
}

/**
 * Finishes what dead processes left unfinished: letters that wait for resolved ones, and drafts.
 */
export async function recover(context: StoreContext): Promise<void> {
  await context.letters.refresh()
  let after: (string | number)[] | undefined
  do {
    const { hits } = await context.letters.search({
      query: { exists: { field: 'waits_for' } },
      size: pageSize,
      _source: false,
      sort: [{ letter_id: 'asc' }],
      ...(after ? { search_after: after } : {}),
    })
    await recheckWaits(context, idsOf(hits))
    after = hits.length === pageSize ? hits.at(-1)!.place : undefined
  } while (after)
  const query = { range: { draft_ms: { lt: context.clock.now() - abandonedMs } } }
  const { hits } = await context.letters.search({ query, size: pageSize, _source: false })
  for (const standing of (await readWithDrafts(context, idsOf(hits))).values())
    if (standing.record.draftMs !== undefined) await finishDraft(context, standing)
}

function idsOf(hits: readonly { id: string }[]): string[] {
  return hits.map(({ id }) => id)
}
