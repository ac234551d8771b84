import type { DeadLetter } from '../../letter/letter.ts'
import { countsOf, withChange, type Change } from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ApplyResult, LeaseRef } from '../../store.ts'
import { follow } from './add.ts'
import { documentOf, type Kept } from './document.ts'
import { inRounds, lettersNow, type Desk } from './desk.ts'
import { crowded, maxTries } from './tries.ts'

/** One wish for one letter, and what became of it. */
interface Wish<R> {
  id: string
  /** What the letter becomes, or the answer when it stays as it is. */
  decide: (kept: Kept) => Kept | { answer: R }
  missing: R
  written: R
  answer?: R
  next?: Kept
}

export async function apply(desk: Desk, changes: readonly Change[]): Promise<ApplyResult[]> {
  const wishes = changes.map((change): Wish<ApplyResult> => ({
    id: change.id,
    decide: (kept) => (holds(kept.letter, change) ? changed(kept, change) : { answer: 'conflict' }),
    missing: 'missing',
    written: 'written',
  }))
  for (const round of inRounds(wishes, ({ id }) => [id])) {
    await fulfil(desk, round)
    await follow(
      desk,
      round.flatMap(({ next }) => next ?? []),
    )
  }
  for (const [at, { next }] of wishes.entries())
    if (next) for (const action of countsOf(changes[at]!)) desk.totals.count(action, next.letter)
  await desk.totals.flush()
  // Whoever is next in a lane may have become free.
  if (wishes.some(({ next }) => next?.letter.lane !== undefined)) desk.wake()
  return wishes.map(({ answer }) => answer!)
}

export async function renew(
  desk: Desk,
  leases: readonly LeaseRef[],
  leaseMs: number,
): Promise<boolean[]> {
  const end = toTimestamp(desk.clock.now() + leaseMs)
  const wishes = leases.map((held): Wish<boolean> => ({
    id: held.id,
    decide: (kept) => {
      const { lease } = kept.letter
      if (!lease || !isLeased(kept.letter, held)) return { answer: false }
      if (end <= lease.expiresAt) return { answer: true }
      return { ...kept, letter: { ...kept.letter, lease: { ...lease, expiresAt: end } } }
    },
    missing: false,
    written: true,
  }))
  for (const round of inRounds(wishes, ({ id }) => [id])) await fulfil(desk, round)
  return wishes.map(({ answer }) => answer!)
}

/** Reads, decides and writes, again for those whose letter was changed in between. */
async function fulfil<R>(desk: Desk, wishes: readonly Wish<R>[]): Promise<void> {
  let left = wishes
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === maxTries) throw crowded('a letter')
    const found = await lettersNow(
      desk,
      left.map(({ id }) => id),
    )
    const writing: { wish: Wish<R>; next: Kept; at: { seqNo: number; term: number } }[] = []
    for (const wish of left) {
      const standing = found.get(wish.id)
      const decided = standing ? wish.decide(standing.kept) : { answer: wish.missing }
      if ('answer' in decided) wish.answer = decided.answer
      else writing.push({ wish, next: decided, at: standing!.mark })
    }
    const written = await desk.letters.write(
      writing.map(({ wish, next, at }) => ({ id: wish.id, put: documentOf(next), at })),
    )
    for (const [at, { wish, next }] of writing.entries())
      if (written[at]!.done) Object.assign(wish, { answer: wish.written, next })
    left = left.filter(({ answer }) => answer === undefined)
  }
}

function holds(letter: DeadLetter, { guard }: Change): boolean {
  return 'epoch' in guard ? isLeased(letter, guard) : letter.version === guard.version
}

/** Leased under this epoch, even past the end of the lease as long as nobody took over. */
function isLeased(
  { state, lease, ...letter }: DeadLetter,
  { epoch, worker }: { epoch: number; worker?: string },
): boolean {
  const mine = worker === undefined || lease?.worker === worker
  return state === 'retrying' && letter.epoch === epoch && mine
}

function changed(kept: Kept, change: Change): Kept {
  const edited = change.set.payload && !kept.original ? { original: kept.letter.payload } : {}
  return { ...kept, ...edited, letter: withChange(kept.letter, change) }
}
