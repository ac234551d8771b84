import { isDone, type Action, type LetterSummary } from '../../letter/letter.ts'
import { matches, type LetterFilter } from '../../letter/query.ts'
import { conditionsOf } from './filter.ts'
import { readLightLetters, type StoreContext } from './context.ts'
import type { Light } from './document.ts'
import { forgetKeys } from './keys.ts'
import { forgetLanes } from './lanes.ts'
import { freeDependents } from './waits.ts'

const pageSize = 250

/** Removes matching letters page by page. A search finds them, and a read in real time decides. */
export async function remove(context: StoreContext, which: LetterFilter): Promise<number> {
  const fits = (letter: LetterSummary, { waitsFor }: Light): boolean => {
    const waits = waitsFor.length > 0
    return matches(letter, which) && (which.dependent ?? waits) === waits
  }
  let gone = 0
  for await (const ids of which.ids ? inPages(which.ids) : pagesOf(context, which))
    gone += await removeLetters(context, ids, 'remove', fits)
  await context.totals.flush()
  return gone
}

async function* inPages(ids: readonly string[]): AsyncGenerator<string[]> {
  const all = [...new Set(ids)]
  for (let at = 0; at < all.length; at += pageSize) yield all.slice(at, at + pageSize)
}

async function* pagesOf(context: StoreContext, which: LetterFilter): AsyncGenerator<string[]> {
  await context.letters.refresh()
  let after: (string | number)[] | undefined
  do {
    const { hits } = await context.letters.search({
      query: conditionsOf(which),
      sort: [{ letter_id: 'asc' }],
      size: pageSize,
      _source: false,
      ...(after ? { search_after: after } : {}),
    })
    after = hits.length === pageSize ? hits.at(-1)!.place : undefined
    yield hits.map(({ id }) => id)
  } while (after)
}

/** Removes the letters that match when read; leased ones stay. Returns how many were removed. */
export async function removeLetters(
  context: StoreContext,
  ids: readonly string[],
  action: Action,
  fits: (letter: LetterSummary, record: Light) => boolean,
): Promise<number> {
  const gone: Light[] = []
  let left = ids
  while (left.length > 0) {
    const going = [...(await readLightLetters(context, left)).values()].filter(
      ({ record }) =>
        record.draftMs === undefined &&
        record.letter.state !== 'retrying' &&
        fits(record.letter, record),
    )
    await freeBefore(
      context,
      going.map(({ record }) => record.letter),
    )
    const written = await context.letters.write(
      going.map(({ record, mark }) => ({ id: record.letter.id, drop: true, at: mark })),
    )
    for (const [at, { record }] of going.entries()) if (written[at]!.done) gone.push(record)
    // Changed meanwhile, if only by a renewed lease: read once more.
    left = going.filter((_, at) => !written[at]!.done).map(({ record }) => record.letter.id)
  }
  for (const { letter } of gone) context.totals.count(action, letter)
  await forgetKeys(context, gone)
  await forgetLanes(context, gone)
  if (gone.some(({ letter }) => letter.lane !== undefined)) context.wake()
  return gone.length
}

/**
 * After a resolved letter is removed, nobody can see that it was resolved, so its dependents are
 * freed before.
 */
async function freeBefore(context: StoreContext, going: readonly LetterSummary[]): Promise<void> {
  const done = going.filter(isDone).map(({ id }) => id)
  if (done.length > 0 && (await freeDependents(context, done)) > 0) context.wake()
}
