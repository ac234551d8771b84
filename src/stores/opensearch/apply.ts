import { countsOf } from '../../letter/counts.ts'
import { withChange, type Change } from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ApplyResult, LeaseRef } from '../../store.ts'
import { isLeased, meetsGuard } from '../lease.ts'
import { documentOf, type LetterRecord } from './document.ts'
import { splitIntoRounds, readLetters, type StoreContext } from './context.ts'
import { contentionError, maxAttempts } from './contention.ts'
import type { Revision } from './document-index.ts'
import { propagateWrites } from './waits.ts'

/** One update of one letter, and its result. */
interface Update<R> {
  id: string
  /** Returns the new letter, or the result if the letter stays unchanged. */
  decide: (record: LetterRecord) => LetterRecord | { result: R }
  /** The results if the letter does not exist, and if the new letter was written. */
  missing: R
  written: R
  result?: R
  /** The letter as it was written. */
  next?: LetterRecord
}

export async function apply(
  context: StoreContext,
  changes: readonly Change[],
): Promise<ApplyResult[]> {
  const updates = changes.map((change): Update<ApplyResult> => ({
    id: change.id,
    decide: (record) =>
      meetsGuard(record.letter, change) ? applyChange(record, change) : { result: 'conflict' },
    missing: 'missing',
    written: 'written',
  }))
  for (const round of splitIntoRounds(updates, ({ id }) => [id])) {
    await runUpdates(context, round)
    await propagateWrites(
      context,
      round.flatMap(({ next }) => next ?? []),
    )
  }
  for (const [at, { next }] of updates.entries())
    if (next) for (const action of countsOf(changes[at]!)) context.totals.count(action, next.letter)
  await context.totals.flush()
  // The next letter of a lane may have become free.
  if (updates.some(({ next }) => next?.letter.lane !== undefined)) context.wake()
  return updates.map(({ result }) => result!)
}

export async function renew(
  context: StoreContext,
  leases: readonly LeaseRef[],
  leaseMs: number,
): Promise<boolean[]> {
  const expiresAt = toTimestamp(context.clock.now() + leaseMs)
  const updates = leases.map((ref): Update<boolean> => ({
    id: ref.id,
    decide: (record) => {
      const { lease } = record.letter
      if (!lease || !isLeased(record.letter, ref)) return { result: false }
      if (expiresAt <= lease.expiresAt) return { result: true }
      return { ...record, letter: { ...record.letter, lease: { ...lease, expiresAt } } }
    },
    missing: false,
    written: true,
  }))
  for (const round of splitIntoRounds(updates, ({ id }) => [id])) await runUpdates(context, round)
  return updates.map(({ result }) => result!)
}

/** Reads, decides and writes; repeats for letters that were changed in between. */
async function runUpdates<R>(context: StoreContext, updates: readonly Update<R>[]): Promise<void> {
  let left = updates
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === maxAttempts) throw contentionError('a letter')
    const letters = await readLetters(
      context,
      left.map(({ id }) => id),
    )
    const writes: { update: Update<R>; next: LetterRecord; expected: Revision }[] = []
    for (const update of left) {
      const current = letters.get(update.id)
      const decision = current ? update.decide(current.record) : { result: update.missing }
      if ('result' in decision) update.result = decision.result
      else writes.push({ update, next: decision, expected: current!.revision })
    }
    const written = await context.letters.write(
      writes.map(({ update, next, expected }) => ({
        id: update.id,
        put: documentOf(next),
        expected,
      })),
    )
    for (const [at, { update, next }] of writes.entries())
      if (written[at]!.done) Object.assign(update, { result: update.written, next })
    left = left.filter(({ result }) => result === undefined)
  }
}

function applyChange(record: LetterRecord, change: Change): LetterRecord {
  const edited = change.set.payload && !record.original ? { original: record.letter.payload } : {}
  return { ...record, ...edited, letter: withChange(record.letter, change) }
}
