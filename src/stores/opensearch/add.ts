import { RedriveError } from '../../errors.ts'
import type { Outcome } from '../../backends/batcher.ts'
import { isDone, type DeadLetter, type LetterSummary } from '../../letter/letter.ts'
import { countsOfCapture, occur } from '../../letter/moves.ts'
import { dueAt } from '../../letter/order.ts'
import { toMs } from '../../letter/time.ts'
import type { AddResult, Capacity } from '../../store.ts'
import { documentOf, type LetterRecord } from './document.ts'
import {
  splitIntoRounds,
  readLightLetters,
  readWithDrafts,
  type StoreContext,
  type ReadLetter,
} from './context.ts'
import { conditionsOf } from './filter.ts'
import { finishDraft, holderOf, keyOf } from './keys.ts'
import { removeLetters } from './remove.ts'
import { freeDependents, recheckWaits, findUnresolved } from './waits.ts'
import { contentionError, maxAttempts } from './contention.ts'
import { isRefusal } from '../../backends/opensearch/errors.ts'

/** One letter being added, and its result. */
interface Arrival {
  letter: DeadLetter
  result?: AddResult | undefined
  /** Why the server rejected the letter. */
  fault?: RedriveError
}

export async function add(
  context: StoreContext,
  letters: readonly DeadLetter[],
): Promise<AddResult[]> {
  return unwrapOutcomes(await addEach(context, letters))
}

/** Adds letters of several callers: a letter that the server rejects does not fail the others. */
export async function addEach(
  context: StoreContext,
  letters: readonly DeadLetter[],
): Promise<Outcome<AddResult>[]> {
  const arrivals = letters.map((letter): Arrival => ({ letter }))
  const namesOf = ({ letter }: Arrival): string[] =>
    letter.dedupeKey === undefined ? [letter.id] : [letter.id, keyOf(letter)]
  for (const round of splitIntoRounds(arrivals, namesOf)) await addRound(context, round)
  await context.totals.flush()
  return arrivals.map(({ result, fault }) => (fault ? { error: fault } : { value: result! }))
}

/** The results of one caller, or the first error among them. */
export function unwrapOutcomes(outcomes: readonly Outcome<AddResult>[]): AddResult[] {
  return outcomes.map((one) => {
    if ('error' in one) throw one.error
    return one.value
  })
}

/**
 * Adds letters within a capacity. They are added one by one if there is little room, and must not
 * come from two calls at once.
 */
export async function addWithin(
  context: StoreContext,
  letters: readonly DeadLetter[],
  capacity: Capacity,
): Promise<AddResult[]> {
  const room = capacity.maxItems - (await countOccupied(context))
  if (room >= letters.length) return add(context, letters)
  const results: AddResult[] = []
  for (const letter of letters) results.push(await addOneWithin(context, letter, capacity))
  await context.totals.flush()
  return results
}

async function addOneWithin(
  context: StoreContext,
  letter: DeadLetter,
  capacity: Capacity,
): Promise<AddResult> {
  const known = await alreadyKept(context, letter)
  if (known) return known
  const evicted = letter.state === 'archived' ? 0 : await makeRoom(context, capacity)
  if (evicted === undefined) return { kind: 'full' }
  const [result] = await add(context, [letter])
  return evicted > 0 && result!.kind === 'added' ? { kind: 'added', evicted } : result!
}

/** Finds a letter by id, then by key. Undefined if it is new. */
async function alreadyKept(
  context: StoreContext,
  letter: DeadLetter,
): Promise<AddResult | undefined> {
  for (let tries = 0; tries < maxAttempts; tries++) {
    const same = (await readWithDrafts(context, [letter.id])).get(letter.id)
    if (same?.record.draftMs !== undefined) {
      await finishDraft(context, same)
      continue
    }
    if (same) return duplicate(same.record.letter, 'id')
    const holder = letter.dedupeKey === undefined ? undefined : await holderOf(context, letter)
    if (!holder) return undefined
    const next = await occurred(context, holder, letter)
    if (next) return duplicate(next, 'dedupeKey')
  }
  throw contentionError('a letter')
}

function duplicate(
  { id, occurrences }: Pick<LetterSummary, 'id' | 'occurrences'>,
  by: 'id' | 'dedupeKey',
): AddResult {
  return { kind: 'duplicate', of: id, by, occurrences }
}

/**
 * Counts another occurrence on an existing letter. Undefined if the letter was changed
 * concurrently.
 */
async function occurred(
  context: StoreContext,
  { record, mark }: ReadLetter,
  newer: DeadLetter,
): Promise<DeadLetter | undefined> {
  const letter = occur(record.letter, newer)
  const put = documentOf({ ...record, letter })
  const [written] = await context.letters.write([{ id: letter.id, put, at: mark }])
  if (!written!.done) return undefined
  context.totals.count('occur', letter)
  return letter
}

async function addRound(context: StoreContext, round: readonly Arrival[]): Promise<void> {
  const unmet = new Set(
    await findUnresolved(
      context,
      round.flatMap(({ letter }) => letter.dependsOn ?? []),
    ),
  )
  const keptAs = (letter: DeadLetter): LetterRecord => ({
    letter,
    waitsFor: [...new Set(letter.dependsOn)].filter((id) => unmet.has(id)),
  })
  await addPlain(
    context,
    round.filter(({ letter }) => letter.dedupeKey === undefined),
    keptAs,
  )
  // Letters with a key take several steps each, and are few; ten run at a time.
  const keyed = round.filter(({ letter }) => letter.dedupeKey !== undefined)
  for (let at = 0; at < keyed.length; at += 10)
    await Promise.all(
      keyed.slice(at, at + 10).map((one) =>
        addKeyed(context, one, keptAs).catch((error: unknown) => {
          if (!isRefusal(error)) throw error
          one.fault = error
        }),
      ),
    )
  await settleIn(
    context,
    round.filter(({ result }) => result?.kind === 'added').map(({ letter }) => keptAs(letter)),
  )
}

async function addPlain(
  context: StoreContext,
  arrivals: readonly Arrival[],
  keptAs: (letter: DeadLetter) => LetterRecord,
): Promise<void> {
  let left = arrivals
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === maxAttempts) throw contentionError('a letter')
    const written = await context.letters.attempt(
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
    const there = await readLightLetters(
      context,
      known.map(({ letter }) => letter.id),
    )
    for (const arrival of known) {
      const same = there.get(arrival.letter.id)?.record
      if (same && same.draftMs === undefined) arrival.result = duplicate(same.letter, 'id')
      else if (same) arrival.result = await alreadyKept(context, arrival.letter)
    }
    left = known.filter(({ result }) => !result)
  }
}

/** Writes a draft that nobody sees, then the key, then the letter: see `finishDraft`. */
async function addKeyed(
  context: StoreContext,
  arrival: Arrival,
  keptAs: (letter: DeadLetter) => LetterRecord,
): Promise<void> {
  const { letter } = arrival
  for (let tries = 0; tries < maxAttempts; tries++) {
    const known = await alreadyKept(context, letter)
    if (known) {
      arrival.result = known
      return
    }
    const draft = { ...keptAs(letter), birth: context.clock.id(), draftMs: context.clock.now() }
    const [made] = await context.letters.write([
      { id: letter.id, put: documentOf(draft), at: 'new' },
    ])
    if (!made!.done) continue
    if ((await finishDraft(context, { record: draft, mark: made!.mark })) === 'gone') continue
    arrival.result = { kind: 'added' }
    return
  }
  throw contentionError('a dedupeKey')
}

/** Updates everything that depends on added letters: counts, dependents and watchers. */
async function settleIn(context: StoreContext, added: readonly LetterRecord[]): Promise<void> {
  for (const { letter } of added)
    for (const action of countsOfCapture(letter.state)) context.totals.count(action, letter)
  await follow(context, added)
}

/**
 * Updates everything that depends on letters that now exist: dependents continue, and watchers are
 * notified of due letters.
 */
export async function follow(context: StoreContext, come: readonly LetterRecord[]): Promise<void> {
  const waiting = come.filter(({ waitsFor }) => waitsFor.length > 0)
  if (waiting.length > 0)
    await recheckWaits(
      context,
      waiting.map(({ letter }) => letter.id),
    )
  const done = come.filter(({ letter }) => isDone(letter)).map(({ letter }) => letter.id)
  const freed = done.length > 0 ? await freeDependents(context, done) : 0
  const now = context.clock.now()
  if (freed > 0 || come.some(({ letter }) => isDue(letter, now))) context.wake()
}

export function isDue(letter: DeadLetter, nowMs: number): boolean {
  const due = dueAt(letter)
  return due !== undefined && !(toMs(due) > nowMs)
}

async function countOccupied(context: StoreContext): Promise<number> {
  await context.letters.refresh()
  return context.letters.count(conditionsOf({}))
}

/**
 * How many letters were evicted to make room for one. Undefined if there is no room, and nothing
 * was evicted.
 */
async function makeRoom(
  context: StoreContext,
  { maxItems, overflow }: Capacity,
): Promise<number | undefined> {
  let gone = 0
  for (let tries = 0; tries < maxAttempts; tries++) {
    const occupied = await countOccupied(context)
    const excess = occupied + 1 - maxItems
    if (excess <= 0) return gone
    if (overflow === 'reject') return undefined
    const { hits } = await context.letters.search({
      query: conditionsOf({ state: 'resolved' }),
      sort: [{ settled_key: 'asc' }, { letter_id: 'asc' }],
      size: Math.min(excess, 10_000),
      _source: false,
    })
    if (hits.length < Math.min(excess, 10_000)) {
      // Letters that others removed since the count are room.
      if ((await countOccupied(context)) < occupied) continue
      return undefined
    }
    const ids = hits.map(({ id }) => id)
    gone += await removeLetters(context, ids, 'evict', ({ state }) => state === 'resolved')
  }
  throw contentionError('a letter')
}

/**
 * Copies the letter, since the caller may change it while it waits. A letter that JSON cannot
 * represent is an error of its caller, and must not fail letters of others in the same batch.
 */
export function copyLetter(letter: DeadLetter): DeadLetter {
  try {
    JSON.stringify({ ...letter, payload: null })
    return structuredClone(letter)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new RedriveError('INVALID_INPUT', `letter ${letter.id} cannot be stored: ${why}`, {
      cause: error,
    })
  }
}
