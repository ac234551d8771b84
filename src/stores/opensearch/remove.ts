import { isDone, type Action, type LetterSummary } from '../../letter/letter.ts'
import { matches, type LetterFilter } from '../../letter/query.ts'
import { conditionsOf } from './filter.ts'
import { readLightLetters, type StoreContext } from './context.ts'
import type { LightRecord } from './document.ts'
import { removeFromKeys } from './keys.ts'
import { removeLanes } from './lanes.ts'
import { freeDependents } from './waits.ts'

const pageSize = 250

/** Removes matching letters page by page. A search finds them, and a read in real time decides. */
export async function remove(context: StoreContext, filter: LetterFilter): Promise<number> {
  const isMatch = (letter: LetterSummary, { waitsFor }: LightRecord): boolean => {
    const waits = waitsFor.length > 0
    return matches(letter, filter) && (filter.dependent ?? waits) === waits
  }
  let removed = 0
  for await (const ids of filter.ids ? splitIntoPages(filter.ids) : findPages(context, filter))
    removed += await removeLetters(context, ids, 'remove', isMatch)
  await context.totals.flush()
  return removed
}

function* splitIntoPages(ids: readonly string[]): Generator<string[]> {
  const unique = [...new Set(ids)]
  for (let at = 0; at < unique.length; at += pageSize) yield unique.slice(at, at + pageSize)
}

async function* findPages(context: StoreContext, filter: LetterFilter): AsyncGenerator<string[]> {
  await context.letters.refresh()
  for await (const hits of context.letters.pages({
    query: conditionsOf(filter),
    sort: [{ letter_id: 'asc' }],
    size: pageSize,
    _source: false,
  }))
    yield hits.map(({ id }) => id)
}

/** Removes the letters that match when read, except leased ones. Returns how many were removed. */
export async function removeLetters(
  context: StoreContext,
  ids: readonly string[],
  action: Action,
  isMatch: (letter: LetterSummary, record: LightRecord) => boolean,
): Promise<number> {
  const removed: LightRecord[] = []
  let left = ids
  while (left.length > 0) {
    const matching = [...(await readLightLetters(context, left)).values()].filter(
      ({ record }) =>
        record.draftMs === undefined &&
        record.letter.state !== 'retrying' &&
        isMatch(record.letter, record),
    )
    // A removed letter no longer shows that it was resolved, so its dependents are freed before.
    const done = matching.flatMap(({ record: { letter } }) => (isDone(letter) ? [letter.id] : []))
    if ((await freeDependents(context, done)) > 0) context.wake()
    const written = await context.letters.write(
      matching.map(({ record, revision }) => ({
        id: record.letter.id,
        drop: true,
        expected: revision,
      })),
    )
    for (const [at, { record }] of matching.entries()) if (written[at]!.done) removed.push(record)
    // Letters that changed in between, if only by a renewed lease, are read once more.
    left = matching.filter((_, at) => !written[at]!.done).map(({ record }) => record.letter.id)
  }
  for (const { letter } of removed) context.totals.count(action, letter)
  await removeFromKeys(context, removed)
  await removeLanes(context, removed)
  if (removed.some(({ letter }) => letter.lane !== undefined)) context.wake()
  return removed.length
}
