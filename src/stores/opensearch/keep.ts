import type { KeepResult, StoredLetter } from '../../store.ts'
import { follow } from './add.ts'
import { documentOf, letterOf, type LetterRecord } from './document.ts'
import {
  splitIntoRounds,
  readLetters,
  readLightLetters,
  readWithDrafts,
  type StoreContext,
} from './context.ts'
import { finishDraft, addToKey } from './keys.ts'
import { findUnresolved } from './waits.ts'
import { contentionError, maxAttempts } from './contention.ts'

export async function stored(
  context: StoreContext,
  ids: readonly string[],
): Promise<StoredLetter[]> {
  const found = await readLetters(context, ids)
  return ids.flatMap((id) => {
    const record = found.get(id)?.record
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

/** One letter being stored, and its result. */
interface Arrival {
  record: LetterRecord
  result?: KeepResult
}

export async function keep(
  context: StoreContext,
  letters: readonly StoredLetter[],
): Promise<KeepResult[]> {
  const arrivals = letters.map(({ letter, original, waitsFor = [] }): Arrival => ({
    record: { letter, waitsFor: [...new Set(waitsFor)], ...(original ? { original } : {}) },
  }))
  for (const round of splitIntoRounds(arrivals, ({ record }) => [record.letter.id]))
    await keepRound(context, round)
  return arrivals.map(({ result }) => result!)
}

async function keepRound(context: StoreContext, round: readonly Arrival[]): Promise<void> {
  const unmet = new Set(
    await findUnresolved(
      context,
      round.flatMap(({ record }) => record.waitsFor),
    ),
  )
  for (const { record } of round) record.waitsFor = record.waitsFor.filter((id) => unmet.has(id))
  let left = round
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === maxAttempts) throw contentionError('a letter')
    await keepThose(context, left)
    left = left.filter(({ result }) => !result)
  }
  await follow(
    context,
    round.filter(({ result }) => result === 'written').map(({ record }) => record),
  )
}

/** Writes letters that are newer than those stored. Letters without a result must be retried. */
async function keepThose(context: StoreContext, arrivals: readonly Arrival[]): Promise<void> {
  const here = await readLightLetters(
    context,
    arrivals.map(({ record }) => record.letter.id),
  )
  const drafts = [...here.values()].filter(({ record }) => record.draftMs !== undefined)
  const left = await readWithDrafts(
    context,
    drafts.map(({ record }) => record.letter.id),
  )
  for (const draft of left.values()) await finishDraft(context, draft)
  const going = arrivals.filter((arrival) => {
    const old = here.get(arrival.record.letter.id)?.record
    if (old?.draftMs !== undefined) return false
    if (old && old.letter.version >= arrival.record.letter.version) arrival.result = 'conflict'
    return !arrival.result
  })
  for (const { record } of going)
    if (record.letter.dedupeKey !== undefined && record.birth === undefined) {
      record.birth = context.clock.id()
      await addToKey(context, record)
    }
  const written = await context.letters.write(
    going.map(({ record }) => {
      const { id } = record.letter
      return { id, put: documentOf(record), at: here.get(id)?.mark ?? 'new' }
    }),
  )
  for (const [at, arrival] of going.entries()) if (written[at]!.done) arrival.result = 'written'
}
