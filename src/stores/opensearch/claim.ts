import type { DeadLetter } from '../../letter/letter.ts'
import * as moves from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Claim, ClaimRequest } from '../../store.ts'
import { documentOf, letterOf } from './document.ts'
import { findDueLetters, findNextDueMs, isDue, type Candidate } from './due.ts'
import { readLetters, type StoreContext, type ReadLetter } from './context.ts'
import { takeLanes } from './lanes.ts'

/** Maximum number of letters per claim, to bound memory. */
const maxClaimLetters = 1000

/** How often a claim searches again because other processes claimed its candidates. */
const maxRounds = 100

/**
 * Claims due letters. A search only proposes candidates. A read in real time decides, followed by a
 * write that is rejected if the letter changed.
 */
export async function claim(context: StoreContext, request: ClaimRequest): Promise<Claim> {
  const limit = Math.min(request.limit, maxClaimLetters)
  const letters: DeadLetter[] = []
  /** Candidates that were not claimable when read: their search fields are wrong. */
  const skip = new Set<string>()
  for (let round = 0; round < maxRounds && letters.length < limit; round++) {
    const missing = limit - letters.length
    const candidates = await findDueLetters(context, request, missing, skip)
    const claimed = await claimCandidates(context, candidates, request, skip)
    letters.push(...claimed)
    if (candidates.length < missing && claimed.length === candidates.length) break
  }
  await context.totals.flush()
  if (letters.length >= request.limit) return { letters }
  if (letters.length > 0) await context.letters.refresh()
  const nextMs = await findNextDueMs(context, request)
  return nextMs === undefined ? { letters } : { letters, nextDueAt: toTimestamp(nextMs) }
}

/** A candidate, and its letter as it was read. */
interface DueLetter {
  candidate: Candidate
  letter: ReadLetter
}

async function claimCandidates(
  context: StoreContext,
  candidates: readonly Candidate[],
  { worker, leaseMs }: ClaimRequest,
  skip: Set<string>,
): Promise<DeadLetter[]> {
  const atMs = context.clock.now()
  const letters = await readLetters(
    context,
    candidates.map(({ id }) => id),
  )
  const due = candidates.flatMap((candidate): DueLetter[] => {
    const letter = letters.get(candidate.id)
    if (letter?.record.waitsFor.length === 0 && isDue(letter.record.letter, atMs))
      return [{ candidate, letter }]
    skip.add(candidate.id)
    return []
  })
  const claims = (await takeRequiredLanes(context, due)).map(({ record, revision }) => ({
    record: { ...record, letter: moves.claim(record.letter, { worker, atMs, leaseMs }) },
    revision,
  }))
  const written = await context.letters.write(
    claims.map(({ record, revision }) => ({
      id: record.letter.id,
      put: documentOf(record),
      expected: revision,
    })),
  )
  const claimed = claims.filter((_, at) => written[at]!.done).map(({ record }) => record)
  for (const { letter } of claimed) context.totals.count('claim', letter)
  return claimed.map(letterOf)
}

/** Returns the letters that need no lane, and those whose lane could be taken. */
async function takeRequiredLanes(
  context: StoreContext,
  due: readonly DueLetter[],
): Promise<ReadLetter[]> {
  const needsLane = ({ record: { letter } }: ReadLetter): boolean =>
    letter.lane !== undefined && letter.state === 'pending'
  const requests = due.flatMap(({ candidate: { lane }, letter }) =>
    lane && needsLane(letter) ? [{ lane: lane.key, document: lane.document, letter }] : [],
  )
  const taken = await takeLanes(context, requests)
  const withLane = new Set(requests.filter((_, at) => taken[at]).map(({ letter }) => letter))
  return due
    .map(({ letter }) => letter)
    .filter((letter) => !needsLane(letter) || withLane.has(letter))
}
