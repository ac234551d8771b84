import { RedriveError } from '../../errors.ts'
import type { Outcome } from '../../backends/batcher.ts'
import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import { countsOfCapture } from '../../letter/counts.ts'
import { occur } from '../../letter/moves.ts'
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
import { finishDraft, findKeyHolder, keyOf } from './keys.ts'
import { removeLetters } from './remove.ts'
import { findUnresolved, propagateWrites } from './waits.ts'
import { contentionError, maxAttempts } from './contention.ts'
import { isRejection } from '../../backends/opensearch/errors.ts'

/** One letter being added, and its result. */
interface AddItem {
  letter: DeadLetter
  result?: AddResult | undefined
  /** Why the server rejected the letter. */
  error?: RedriveError
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
  const items = letters.map((letter): AddItem => ({ letter }))
  const namesOf = ({ letter }: AddItem): string[] =>
    letter.dedupeKey === undefined ? [letter.id] : [letter.id, keyOf(letter)]
  for (const round of splitIntoRounds(items, namesOf)) await addRound(context, round)
  await context.totals.flush()
  return items.map(({ result, error }) => (error ? { error } : { value: result! }))
}

/** Returns the results of one caller, or throws the first error among them. */
export function unwrapOutcomes(outcomes: readonly Outcome<AddResult>[]): AddResult[] {
  return outcomes.map((outcome) => {
    if ('error' in outcome) throw outcome.error
    return outcome.value
  })
}

/**
 * Adds letters within a capacity. Letters are added one by one if there is little room. Two calls
 * must not run at once.
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
  const duplicate = await findDuplicate(context, letter)
  if (duplicate) return duplicate
  const evicted = letter.state === 'archived' ? 0 : await makeRoom(context, capacity)
  if (evicted === undefined) return { kind: 'full' }
  const [result] = await add(context, [letter])
  return evicted > 0 && result!.kind === 'added' ? { kind: 'added', evicted } : result!
}

/**
 * Finds a stored letter with the same id, or with the same key, on which it counts an occurrence.
 * Undefined if the letter is new.
 */
async function findDuplicate(
  context: StoreContext,
  letter: DeadLetter,
): Promise<AddResult | undefined> {
  for (let tries = 0; tries < maxAttempts; tries++) {
    const existing = (await readWithDrafts(context, [letter.id])).get(letter.id)
    if (existing?.record.draftMs !== undefined) {
      await finishDraft(context, existing)
      continue
    }
    if (existing) return duplicateOf(existing.record.letter, 'id')
    const holder = letter.dedupeKey === undefined ? undefined : await findKeyHolder(context, letter)
    if (!holder) return undefined
    const updated = await countOccurrence(context, holder, letter)
    if (updated) return duplicateOf(updated, 'dedupeKey')
  }
  throw contentionError('a letter')
}

function duplicateOf(
  { id, occurrences }: Pick<LetterSummary, 'id' | 'occurrences'>,
  by: 'id' | 'dedupeKey',
): AddResult {
  return { kind: 'duplicate', of: id, by, occurrences }
}

/**
 * Counts another occurrence on an existing letter. Undefined if the letter was changed
 * concurrently.
 */
async function countOccurrence(
  context: StoreContext,
  { record, revision }: ReadLetter,
  newer: DeadLetter,
): Promise<DeadLetter | undefined> {
  const letter = occur(record.letter, newer)
  const put = documentOf({ ...record, letter })
  const [written] = await context.letters.write([{ id: letter.id, put, expected: revision }])
  if (!written!.done) return undefined
  context.totals.count('occur', letter)
  return letter
}

async function addRound(context: StoreContext, round: readonly AddItem[]): Promise<void> {
  const unresolved = await findUnresolved(
    context,
    round.flatMap(({ letter }) => letter.dependsOn ?? []),
  )
  const recordOf = (letter: DeadLetter): LetterRecord => ({
    letter,
    waitsFor: [...new Set(letter.dependsOn)].filter((id) => unresolved.has(id)),
  })
  await addUnkeyed(
    context,
    round.filter(({ letter }) => letter.dedupeKey === undefined),
    recordOf,
  )
  // Letters with a key take several steps each, and are few; ten run at a time.
  const keyed = round.filter(({ letter }) => letter.dedupeKey !== undefined)
  for (let at = 0; at < keyed.length; at += 10)
    await Promise.all(
      keyed.slice(at, at + 10).map((item) =>
        addKeyed(context, item, recordOf).catch((error: unknown) => {
          if (!isRejection(error)) throw error
          item.error = error
        }),
      ),
    )
  const added = round.filter(({ result }) => result?.kind === 'added').map(({ letter }) => letter)
  for (const letter of added)
    for (const action of countsOfCapture(letter.state)) context.totals.count(action, letter)
  await propagateWrites(context, added.map(recordOf))
}

async function addUnkeyed(
  context: StoreContext,
  items: readonly AddItem[],
  recordOf: (letter: DeadLetter) => LetterRecord,
): Promise<void> {
  let left = items
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === maxAttempts) throw contentionError('a letter')
    const results = await context.letters.writeEach(
      left.map(({ letter }) => ({
        id: letter.id,
        put: documentOf(recordOf(letter)),
        expected: 'new',
      })),
    )
    const conflicts = left.filter((item, at) => {
      const written = results[at]!
      if (written.done) item.result = { kind: 'added' }
      else if ('error' in written) {
        if (!isRejection(written.error)) throw written.error
        item.error = written.error
      } else return true
      return false
    })
    const existing = await readLightLetters(
      context,
      conflicts.map(({ letter }) => letter.id),
    )
    for (const item of conflicts) {
      const record = existing.get(item.letter.id)?.record
      if (record && record.draftMs === undefined) item.result = duplicateOf(record.letter, 'id')
      else if (record) item.result = await findDuplicate(context, item.letter)
    }
    left = conflicts.filter(({ result }) => !result)
  }
}

/** Writes a draft that no reader sees, then the key, then the letter: see `finishDraft`. */
async function addKeyed(
  context: StoreContext,
  item: AddItem,
  recordOf: (letter: DeadLetter) => LetterRecord,
): Promise<void> {
  const { letter } = item
  for (let tries = 0; tries < maxAttempts; tries++) {
    const duplicate = await findDuplicate(context, letter)
    if (duplicate) {
      item.result = duplicate
      return
    }
    const draft = { ...recordOf(letter), birth: context.clock.id(), draftMs: context.clock.now() }
    const [written] = await context.letters.write([
      { id: letter.id, put: documentOf(draft), expected: 'new' },
    ])
    if (!written!.done) continue
    if (!(await finishDraft(context, { record: draft, revision: written!.revision }))) continue
    item.result = { kind: 'added' }
    return
  }
  throw contentionError('a dedupeKey')
}

async function countOccupied(context: StoreContext): Promise<number> {
  await context.letters.refresh()
  return context.letters.count(conditionsOf({}))
}

/** Returns how many letters were evicted to make room for one. Undefined if there is no room. */
async function makeRoom(
  context: StoreContext,
  { maxItems, overflow }: Capacity,
): Promise<number | undefined> {
  let evicted = 0
  for (let tries = 0; tries < maxAttempts; tries++) {
    const occupied = await countOccupied(context)
    const excess = occupied + 1 - maxItems
    if (excess <= 0) return evicted
    if (overflow === 'reject') return undefined
    const size = Math.min(excess, 10_000)
    const hits = await context.letters.search({
      query: conditionsOf({ state: 'resolved' }),
      sort: [{ settled_key: 'asc' }, { letter_id: 'asc' }],
      size,
      _source: false,
    })
    if (hits.length < size) {
      // Another process may have made room since the count.
      if ((await countOccupied(context)) < occupied) continue
      return undefined
    }
    const ids = hits.map(({ id }) => id)
    evicted += await removeLetters(context, ids, 'evict', ({ state }) => state === 'resolved')
  }
  throw contentionError('a letter')
}

/**
 * Copies the letter, since the caller may change it while the call waits for its batch. A letter
 * that JSON cannot represent fails only its own call, not the other calls of the batch.
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
