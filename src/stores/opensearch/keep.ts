import type { KeepResult, StoredLetter } from '../../store.ts'
import { follow } from './add.ts'
import { documentOf, letterOf, type Kept } from './document.ts'
import { inRounds, lettersNow, lightNow, withDrafts, type Desk } from './desk.ts'
import { finishDraft, nameKey } from './keys.ts'
import { unresolved } from './waits.ts'
import { crowded, maxTries } from './tries.ts'

export async function stored(desk: Desk, ids: readonly string[]): Promise<StoredLetter[]> {
  const found = await lettersNow(desk, ids)
  return ids.flatMap((id) => {
    const kept = found.get(id)?.kept
    if (!kept) return []
    const { original, waitsFor } = kept
    return [
      {
        letter: letterOf(kept),
        ...(original ? { original } : {}),
        ...(waitsFor.length > 0 ? { waitsFor } : {}),
      },
    ]
  })
}

/** One letter on its way in, and what became of it. */
interface Arrival {
  kept: Kept
  result?: KeepResult
}

export async function keep(desk: Desk, letters: readonly StoredLetter[]): Promise<KeepResult[]> {
  const arrivals = letters.map(({ letter, original, waitsFor = [] }): Arrival => ({
    kept: { letter, waitsFor: [...new Set(waitsFor)], ...(original ? { original } : {}) },
  }))
  for (const round of inRounds(arrivals, ({ kept }) => [kept.letter.id]))
    await keepRound(desk, round)
  return arrivals.map(({ result }) => result!)
}

async function keepRound(desk: Desk, round: readonly Arrival[]): Promise<void> {
  const unmet = new Set(
    await unresolved(
      desk,
      round.flatMap(({ kept }) => kept.waitsFor),
    ),
  )
  for (const { kept } of round) kept.waitsFor = kept.waitsFor.filter((id) => unmet.has(id))
  let left = round
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === maxTries) throw crowded('a letter')
    await keepThose(desk, left)
    left = left.filter(({ result }) => !result)
  }
  await follow(
    desk,
    round.filter(({ result }) => result === 'written').map(({ kept }) => kept),
  )
}

/** Writes those that are newer than what is here. Those without a result are to be tried again. */
async function keepThose(desk: Desk, arrivals: readonly Arrival[]): Promise<void> {
  const here = await lightNow(
    desk,
    arrivals.map(({ kept }) => kept.letter.id),
  )
  const drafts = [...here.values()].filter(({ kept }) => kept.draftMs !== undefined)
  const left = await withDrafts(
    desk,
    drafts.map(({ kept }) => kept.letter.id),
  )
  for (const draft of left.values()) await finishDraft(desk, draft)
  const going = arrivals.filter((arrival) => {
    const old = here.get(arrival.kept.letter.id)?.kept
    if (old?.draftMs !== undefined) return false
    if (old && old.letter.version >= arrival.kept.letter.version) arrival.result = 'conflict'
    return !arrival.result
  })
  for (const { kept } of going)
    if (kept.letter.dedupeKey !== undefined && kept.birth === undefined) {
      kept.birth = desk.clock.id()
      await nameKey(desk, kept)
    }
  const written = await desk.letters.write(
    going.map(({ kept }) => {
      const { id } = kept.letter
      return { id, put: documentOf(kept), at: here.get(id)?.mark ?? 'new' }
    }),
  )
  for (const [at, arrival] of going.entries()) if (written[at]!.done) arrival.result = 'written'
}
