import { RedriveError } from '../../errors.ts'
import type { Outcome } from '../../backends/batcher.ts'
import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import { countsOfCapture, occur } from '../../letter/moves.ts'
import { dueAt } from '../../letter/order.ts'
import { toMs } from '../../letter/time.ts'
import type { AddResult, Capacity } from '../../store.ts'
import { documentOf, type Kept } from './document.ts'
import { inRounds, isDone, lightNow, withDrafts, type Desk, type Standing } from './desk.ts'
import { conditionsOf } from './filter.ts'
import { finishDraft, holderOf, keyOf } from './keys.ts'
import { removeLetters } from './remove.ts'
import { freeDependents, recheckWaits, unresolved } from './waits.ts'
import { crowded, maxTries } from './tries.ts'
import { isRefusal } from '../../backends/opensearch/errors.ts'

/** One letter on its way in, and what becomes of it. */
interface Arrival {
  letter: DeadLetter
  result?: AddResult | undefined
  /** Why the server would not have it. */
  fault?: RedriveError
}

export async function add(desk: Desk, letters: readonly DeadLetter[]): Promise<AddResult[]> {
  return together(await addEach(desk, letters))
}

/** Letters of several callers: one that the server refuses does not fail the others. */
export async function addEach(
  desk: Desk,
  letters: readonly DeadLetter[],
): Promise<Outcome<AddResult>[]> {
  const arrivals = letters.map((letter): Arrival => ({ letter }))
  const namesOf = ({ letter }: Arrival): string[] =>
    letter.dedupeKey === undefined ? [letter.id] : [letter.id, keyOf(letter)]
  for (const round of inRounds(arrivals, namesOf)) await addRound(desk, round)
  await desk.totals.flush()
  return arrivals.map(({ result, fault }) => (fault ? { error: fault } : { value: result! }))
}

/** The results of one caller, or what the first of them fails with. */
export function together(outcomes: readonly Outcome<AddResult>[]): AddResult[] {
  return outcomes.map((one) => {
    if ('error' in one) throw one.error
    return one.value
  })
}

/** Letters within a capacity. They come one by one when the room is scarce, and must not come from two calls at once. */
export async function addWithin(
  desk: Desk,
  letters: readonly DeadLetter[],
  capacity: Capacity,
): Promise<AddResult[]> {
  const room = capacity.maxItems - (await countOccupied(desk))
  if (room >= letters.length) return add(desk, letters)
  const results: AddResult[] = []
  for (const letter of letters) results.push(await addOneWithin(desk, letter, capacity))
  await desk.totals.flush()
  return results
}

async function addOneWithin(
  desk: Desk,
  letter: DeadLetter,
  capacity: Capacity,
): Promise<AddResult> {
  const known = await alreadyKept(desk, letter)
  if (known) return known
  const evicted = letter.state === 'archived' ? 0 : await makeRoom(desk, capacity)
  if (evicted === undefined) return { kind: 'full' }
  const [result] = await add(desk, [letter])
  return evicted > 0 && result!.kind === 'added' ? { kind: 'added', evicted } : result!
}

/** By id first, then by key. Undefined: it is new. */
async function alreadyKept(desk: Desk, letter: DeadLetter): Promise<AddResult | undefined> {
  for (let tries = 0; tries < maxTries; tries++) {
    const same = (await withDrafts(desk, [letter.id])).get(letter.id)
    if (same?.kept.draftMs !== undefined) {
      await finishDraft(desk, same)
      continue
    }
    if (same) return duplicate(same.kept.letter, 'id')
    const holder = letter.dedupeKey === undefined ? undefined : await holderOf(desk, letter)
    if (!holder) return undefined
    const next = await occurred(desk, holder, letter)
    if (next) return duplicate(next, 'dedupeKey')
  }
  throw crowded('a letter')
}

function duplicate(
  { id, occurrences }: Pick<LetterSummary, 'id' | 'occurrences'>,
  by: 'id' | 'dedupeKey',
): AddResult {
  return { kind: 'duplicate', of: id, by, occurrences }
}

/** The same thing was captured once more. Undefined when the letter was changed by someone else meanwhile. */
async function occurred(
  desk: Desk,
  { kept, mark }: Standing,
  newer: DeadLetter,
): Promise<DeadLetter | undefined> {
  const letter = occur(kept.letter, newer)
  const put = documentOf({ ...kept, letter })
  const [written] = await desk.letters.write([{ id: letter.id, put, at: mark }])
  if (!written!.done) return undefined
  desk.totals.count('occur', letter)
  return letter
}

async function addRound(desk: Desk, round: readonly Arrival[]): Promise<void> {
  const unmet = new Set(
    await unresolved(
      desk,
      round.flatMap(({ letter }) => letter.dependsOn ?? []),
    ),
  )
  const keptAs = (letter: DeadLetter): Kept => ({
    letter,
    waitsFor: [...new Set(letter.dependsOn)].filter((id) => unmet.has(id)),
  })
  await addPlain(
    desk,
    round.filter(({ letter }) => letter.dedupeKey === undefined),
    keptAs,
  )
  // Those with a key take several steps each, and are few; ten go at a time.
  const keyed = round.filter(({ letter }) => letter.dedupeKey !== undefined)
  for (let at = 0; at < keyed.length; at += 10)
    await Promise.all(
      keyed.slice(at, at + 10).map((one) =>
        addKeyed(desk, one, keptAs).catch((error: unknown) => {
          if (!isRefusal(error)) throw error
          one.fault = error
        }),
      ),
    )
  await settleIn(
    desk,
    round.filter(({ result }) => result?.kind === 'added').map(({ letter }) => keptAs(letter)),
  )
}

async function addPlain(
  desk: Desk,
  arrivals: readonly Arrival[],
  keptAs: (letter: DeadLetter) => Kept,
): Promise<void> {
  let left = arrivals
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === maxTries) throw crowded('a letter')
    const written = await desk.letters.attempt(
      left.map(({ letter }) => ({ id: letter.id, put: documentOf(keptAs(letter)), at: 'new' })),
    )
    const known = left.filter((arrival, at) => {
      const one = written[at]!
      if (one.done) arrival.result = { kind: 'added' }
      else if ('fault' in one) {
        if (!isRefusal(one.fault)) throw one.fault
        arrival.fault = one.fault
      } else return true
      return false
    })
    const there = await lightNow(
      desk,
      known.map(({ letter }) => letter.id),
    )
    for (const arrival of known) {
      const same = there.get(arrival.letter.id)?.kept
      if (same && same.draftMs === undefined) arrival.result = duplicate(same.letter, 'id')
      else if (same) arrival.result = await alreadyKept(desk, arrival.letter)
    }
    left = known.filter(({ result }) => !result)
  }
}

/** First a draft that nobody sees, then the key, then the letter: see `finishDraft`. */
async function addKeyed(
  desk: Desk,
  arrival: Arrival,
  keptAs: (letter: DeadLetter) => Kept,
): Promise<void> {
  const { letter } = arrival
  for (let tries = 0; tries < maxTries; tries++) {
    const known = await alreadyKept(desk, letter)
    if (known) {
      arrival.result = known
      return
    }
    const draft = { ...keptAs(letter), birth: desk.clock.id(), draftMs: desk.clock.now() }
    const [made] = await desk.letters.write([{ id: letter.id, put: documentOf(draft), at: 'new' }])
    if (!made!.done) continue
    if ((await finishDraft(desk, { kept: draft, mark: made!.mark })) === 'gone') continue
    arrival.result = { kind: 'added' }
    return
  }
  throw crowded('a dedupeKey')
}

/** What follows from letters that have come: they are counted, they free others, and may be due. */
async function settleIn(desk: Desk, added: readonly Kept[]): Promise<void> {
  for (const { letter } of added)
    for (const action of countsOfCapture(letter.state)) desk.totals.count(action, letter)
  await follow(desk, added)
}

/** What follows from letters that now stand here: whoever waited for them goes on, and watchers hear of what is due. */
export async function follow(desk: Desk, come: readonly Kept[]): Promise<void> {
  const waiting = come.filter(({ waitsFor }) => waitsFor.length > 0)
  if (waiting.length > 0)
    await recheckWaits(
      desk,
      waiting.map(({ letter }) => letter.id),
    )
  const done = come.filter(({ letter }) => isDone(letter)).map(({ letter }) => letter.id)
  const freed = done.length > 0 ? await freeDependents(desk, done) : 0
  const now = desk.clock.now()
  if (freed > 0 || come.some(({ letter }) => isDue(letter, now))) desk.wake()
}

export function isDue(letter: DeadLetter, nowMs: number): boolean {
  const due = dueAt(letter)
  return due !== undefined && !(toMs(due) > nowMs)
}

async function countOccupied(desk: Desk): Promise<number> {
  await desk.letters.refresh()
  return desk.letters.count(conditionsOf({}))
}

/** How many had to go for one more to fit. Undefined: there is no room, and nothing went. */
async function makeRoom(desk: Desk, { maxItems, overflow }: Capacity): Promise<number | undefined> {
  let gone = 0
  for (let tries = 0; tries < maxTries; tries++) {
    const occupied = await countOccupied(desk)
    const excess = occupied + 1 - maxItems
    if (excess <= 0) return gone
    if (overflow === 'reject') return undefined
    const { hits } = await desk.letters.search({
      query: conditionsOf({ state: 'resolved' }),
      sort: [{ settled_key: 'asc' }, { letter_id: 'asc' }],
      size: Math.min(excess, 10_000),
      _source: false,
    })
    if (hits.length < Math.min(excess, 10_000)) {
      // What others removed since it was counted is room.
      if ((await countOccupied(desk)) < occupied) continue
      return undefined
    }
    const ids = hits.map(({ id }) => id)
    gone += await removeLetters(desk, ids, 'evict', ({ state }) => state === 'resolved')
  }
  throw crowded('a letter')
}

/**
 * The letter as it is now: the caller may change it while it waits for its turn. One that JSON cannot hold is the caller's
 * mistake, and must not fail the letters of others that go with it.
 */
export function copied(letter: DeadLetter): DeadLetter {
  try {
    JSON.stringify({ ...letter, payload: null })
    return structuredClone(letter)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new RedriveError('INVALID_INPUT', `letter ${letter.id} cannot be kept: ${why}`, {
      cause: error,
    })
  }
}
