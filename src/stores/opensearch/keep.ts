import type { KeepResult, KeptLetter, StoredLetter } from '../../store.ts'
import { documentOf, letterOf, type LetterRecord } from './document.ts'
import {
  splitIntoRounds,
  readLetters,
  readLightLetters,
  readWithDrafts,
  type StoreContext,
} from './context.ts'
import { finishDraft, addToKey } from './keys.ts'
import { findUnresolved, propagateWrites } from './waits.ts'
import { contentionError, maxAttempts } from './contention.ts'

export async function readStored(
  context: StoreContext,
  ids: readonly string[],
): Promise<StoredLetter[]> {
  const letters = await readLetters(context, ids)
  return ids.flatMap((id) => {
    const record = letters.get(id)?.record
    if (!record) return []
    const { original, waitsFor } = record
    return [
      {
        letter: letterOf(record),
        ...(original ? { original } : {}),
        ...(waitsFor.length > 0 ? { waitsFor } : {}),
      },
    ]
  })
}

/** One letter being kept, and its result. */
interface KeepItem {
  record: LetterRecord
  replaces: number | undefined
  result?: KeepResult
}

export async function keep(
  context: StoreContext,
  letters: readonly KeptLetter[],
): Promise<KeepResult[]> {
  const items = letters.map(({ letter, original, waitsFor = [], replaces }): KeepItem => ({
    replaces,
    record: { letter, waitsFor: [...new Set(waitsFor)], ...(original ? { original } : {}) },
  }))
  for (const round of splitIntoRounds(items, ({ record }) => [record.letter.id]))
    await keepRound(context, round)
  return items.map(({ result }) => result!)
}

async function keepRound(context: StoreContext, round: readonly KeepItem[]): Promise<void> {
  const unresolved = await findUnresolved(
    context,
    round.flatMap(({ record }) => record.waitsFor),
  )
  for (const { record } of round)
    record.waitsFor = record.waitsFor.filter((id) => unresolved.has(id))
  let left = round
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === maxAttempts) throw contentionError('a letter')
    await keepNewer(context, left)
    left = left.filter(({ result }) => !result)
  }
  await propagateWrites(
    context,
    round.filter(({ result }) => result === 'written').map(({ record }) => record),
  )
}

/**
 * Writes letters that are newer than those stored. An item without a result must be tried again.
 */
async function keepNewer(context: StoreContext, items: readonly KeepItem[]): Promise<void> {
  const existing = await readLightLetters(
    context,
    items.map(({ record }) => record.letter.id),
  )
  const drafts = [...existing.values()].filter(({ record }) => record.draftMs !== undefined)
  const wholeDrafts = await readWithDrafts(
    context,
    drafts.map(({ record }) => record.letter.id),
  )
  for (const draft of wholeDrafts.values()) await finishDraft(context, draft)
  const newer = items.filter((item) => {
    const stored = existing.get(item.record.letter.id)?.record
    if (stored?.draftMs !== undefined) return false
    if (stored && stored.letter.version >= item.record.letter.version) item.result = 'conflict'
    if (item.replaces !== undefined && stored?.letter.version !== item.replaces)
      item.result = 'conflict'
    return !item.result
  })
  for (const { record } of newer)
    if (record.letter.dedupeKey !== undefined && record.birth === undefined) {
      record.birth = context.clock.id()
      await addToKey(context, record)
    }
  const written = await context.letters.write(
    newer.map(({ record }) => {
      const { id } = record.letter
      return { id, put: documentOf(record), expected: existing.get(id)?.revision ?? 'new' }
    }),
  )
  for (const [at, item] of newer.entries()) if (written[at]!.done) item.result = 'written'
}
