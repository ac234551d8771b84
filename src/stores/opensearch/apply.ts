import { countsOf, withChange, type Change } from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ApplyResult, LeaseRef } from '../../store.ts'
import { isLeased, meetsGuard } from '../lease.ts'
import { follow } from './add.ts'
import { documentOf, type LetterRecord } from './document.ts'
import { splitIntoRounds, readLetters, type StoreContext } from './context.ts'
import { contentionError, maxAttempts } from './contention.ts'

/** One change of one letter, and its result. */
interface Wish<R> {
  id: string
  /** The new letter, or the result if it stays unchanged. */
  decide: (record: LetterRecord) => LetterRecord | { answer: R }
  missing: R
  written: R
  answer?: R
  next?: LetterRecord
}

export async function apply(
  context: StoreContext,
  changes: readonly Change[],
): Promise<ApplyResult[]> {
  const wishes = changes.map((change): Wish<ApplyResult> => ({
    id: change.id,
    decide: (record) =>
      meetsGuard(record.letter, change) ? applyChange(record, change) : { answer: 'conflict' },
    missing: 'missing',
    written: 'written',
  }))
  for (const round of splitIntoRounds(wishes, ({ id }) => [id])) {
    await fulfil(context, round)
    await follow(
      context,
      round.flatMap(({ next }) => next ?? []),
    )
  }
  for (const [at, { next }] of wishes.entries())
    if (next) for (const action of countsOf(changes[at]!)) context.totals.count(action, next.letter)
  await context.totals.flush()
  // The next letter of a lane may have become free.
  if (wishes.some(({ next }) => next?.letter.lane !== undefined)) context.wake()
  return wishes.map(({ answer }) => answer!)
}

export async function renew(
  context: StoreContext,
  leases: readonly LeaseRef[],
  leaseMs: number,
): Promise<boolean[]> {
  const end = toTimestamp(context.clock.now() + leaseMs)
  const wishes = leases.map((held): Wish<boolean> => ({
    id: held.id,
    decide: (record) => {
      const { lease } = record.letter
      if (!lease || !isLeased(record.letter, held)) return { answer: false }
      if (end <= lease.expiresAt) return { answer: true }
      return { ...record, letter: { ...record.letter, lease: { ...lease, expiresAt: end } } }
    },
    missing: false,
    written: true,
  }))
  for (const round of splitIntoRounds(wishes, ({ id }) => [id])) await fulfil(context, round)
  return wishes.map(({ answer }) => answer!)
}

/** Reads, decides and writes; repeats for letters that were changed in between. */
async function fulfil<R>(context: StoreContext, wishes: readonly Wish<R>[]): Promise<void> {
  let left = wishes
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === maxAttempts) throw contentionError('a letter')
    const found = await readLetters(
      context,
      left.map(({ id }) => id),
    )
    const writing: { wish: Wish<R>; next: LetterRecord; at: { seqNo: number; term: number } }[] = []
    for (const wish of left) {
      const standing = found.get(wish.id)
      const decided = standing ? wish.decide(standing.record) : { answer: wish.missing }
      if ('answer' in decided) wish.answer = decided.answer
      else writing.push({ wish, next: decided, at: standing!.mark })
    }
    const written = await context.letters.write(
      writing.map(({ wish, next, at }) => ({ id: wish.id, put: documentOf(next), at })),
    )
    for (const [at, { wish, next }] of writing.entries())
      if (written[at]!.done) Object.assign(wish, { answer: wish.written, next })
    left = left.filter(({ answer }) => answer === undefined)
  }
}

function applyChange(record: LetterRecord, change: Change): LetterRecord {
  const edited = change.set.payload && !record.original ? { original: record.letter.payload } : {}
  return { ...record, ...edited, letter: withChange(record.letter, change) }
}
