import { documentOf } from './document.ts'
import { isDone, lightNow, withDrafts, type Desk } from './desk.ts'
import { finishDraft } from './keys.ts'

const pageSize = 500
/** A draft that is older has been left behind by a process that died. */
const abandonedMs = 60_000

/** Those of the letters that are not resolved. */
export async function unresolved(desk: Desk, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const found = await lightNow(desk, ids)
  return [...new Set(ids)].filter((id) => {
    const other = found.get(id)?.kept
    return !other || other.draftMs !== undefined || !isDone(other.letter)
  })
}

/** These are resolved: whoever waits for them waits no more. Answers how many letters that freed. */
export async function freeDependents(desk: Desk, done: readonly string[]): Promise<number> {
  let freed = 0
  for (let at = 0; at < done.length; at += pageSize) {
    const some = done.slice(at, at + pageSize)
    for (;;) {
      await desk.letters.refresh()
      const query = { terms: { waits_for: some } }
      const { hits } = await desk.letters.search({ query, size: pageSize, _source: false })
      if (hits.length === 0) break
      freed += await free(desk, idsOf(hits), new Set(some))
    }
  }
  return freed
}

/** Takes what is done off what these letters wait for. */
async function free(
  desk: Desk,
  ids: readonly string[],
  done: ReadonlySet<string>,
): Promise<number> {
  const writes = []
  let freed = 0
  for (const { kept, mark } of (await withDrafts(desk, ids)).values()) {
    const waitsFor = kept.waitsFor.filter((id) => !done.has(id))
    const put = documentOf({ ...kept, waitsFor })
    writes.push({ id: kept.letter.id, put, at: mark })
    if (waitsFor.length === 0 && kept.waitsFor.length > 0) freed += 1
  }
  await desk.letters.write(writes)
  return freed
}

/** A letter was kept as waiting; what it waits for may have been resolved while it was being written. */
export async function recheckWaits(desk: Desk, ids: readonly string[]): Promise<void> {
  const waiting = await lightNow(desk, ids)
  const asked = [...waiting.values()].flatMap(({ kept }) => kept.waitsFor)
  const left = new Set(await unresolved(desk, asked))
  const done = new Set(asked.filter((id) => !left.has(id)))
  if (done.size > 0) await freeDependents(desk, [...done])
}

/** Finishes what processes that died have left half done: letters that wait for resolved ones, and drafts. */
export async function recover(desk: Desk): Promise<void> {
  await desk.letters.refresh()
  let after: (string | number)[] | undefined
  do {
    const { hits } = await desk.letters.search({
      query: { exists: { field: 'waits_for' } },
      size: pageSize,
      _source: false,
      sort: [{ letter_id: 'asc' }],
      ...(after ? { search_after: after } : {}),
    })
    await recheckWaits(desk, idsOf(hits))
    after = hits.length === pageSize ? hits.at(-1)!.place : undefined
  } while (after)
  const query = { range: { draft_ms: { lt: desk.clock.now() - abandonedMs } } }
  const { hits } = await desk.letters.search({ query, size: pageSize, _source: false })
  for (const standing of (await withDrafts(desk, idsOf(hits))).values())
    if (standing.kept.draftMs !== undefined) await finishDraft(desk, standing)
}

function idsOf(hits: readonly { id: string }[]): string[] {
  return hits.map(({ id }) => id)
}
