import type { Action, LetterSummary } from '../../letter/letter.ts'
import { matches, type LetterFilter } from '../../letter/query.ts'
import { conditionsOf } from './filter.ts'
import { isDone, lightNow, type Desk } from './desk.ts'
import type { Light } from './document.ts'
import { forgetKeys } from './keys.ts'
import { forgetLanes } from './lanes.ts'
import { freeDependents } from './waits.ts'

const pageSize = 250

/** Removes what matches, page by page. A search finds it, and what it is then decides. */
export async function remove(desk: Desk, which: LetterFilter): Promise<number> {
  const fits = (letter: LetterSummary, { waitsFor }: Light): boolean => {
    const waits = waitsFor.length > 0
    return matches(letter, which) && (which.dependent ?? waits) === waits
  }
  let gone = 0
  for await (const ids of which.ids ? inPages(which.ids) : pagesOf(desk, which))
    gone += await removeLetters(desk, ids, 'remove', fits)
  await desk.totals.flush()
  return gone
}

async function* inPages(ids: readonly string[]): AsyncGenerator<string[]> {
  const all = [...new Set(ids)]
  for (let at = 0; at < all.length; at += pageSize) yield all.slice(at, at + pageSize)
}

async function* pagesOf(desk: Desk, which: LetterFilter): AsyncGenerator<string[]> {
  await desk.letters.refresh()
  let after: (string | number)[] | undefined
  do {
    const { hits } = await desk.letters.search({
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

/** Removes those of the letters that fit when looked at; what is leased stays. Answers how many went. */
export async function removeLetters(
  desk: Desk,
  ids: readonly string[],
  action: Action,
  fits: (letter: LetterSummary, kept: Light) => boolean,
): Promise<number> {
  const gone: Light[] = []
  let left = ids
  while (left.length > 0) {
    const going = [...(await lightNow(desk, left)).values()].filter(
      ({ kept }) =>
        kept.draftMs === undefined && kept.letter.state !== 'retrying' && fits(kept.letter, kept),
    )
    await freeBefore(
      desk,
      going.map(({ kept }) => kept.letter),
    )
    const written = await desk.letters.write(
      going.map(({ kept, mark }) => ({ id: kept.letter.id, drop: true, at: mark })),
    )
    for (const [at, { kept }] of going.entries()) if (written[at]!.done) gone.push(kept)
    // Changed meanwhile, if only by a worker's renewal: looked at once more.
    left = going.filter((_, at) => !written[at]!.done).map(({ kept }) => kept.letter.id)
  }
  for (const { letter } of gone) desk.totals.count(action, letter)
  await forgetKeys(desk, gone)
  await forgetLanes(desk, gone)
  if (gone.some(({ letter }) => letter.lane !== undefined)) desk.wake()
  return gone.length
}

/** Once a resolved letter is gone nobody can see that it was, so that whoever waits for it is freed before. */
async function freeBefore(desk: Desk, going: readonly LetterSummary[]): Promise<void> {
  const done = going.filter(isDone).map(({ id }) => id)
  if (done.length > 0 && (await freeDependents(desk, done)) > 0) desk.wake()
}
