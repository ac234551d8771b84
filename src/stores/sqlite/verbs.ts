import { add } from './add.ts'
import { apply, renew } from './apply.ts'
import type { Books } from './books.ts'
import { claim } from './claim.ts'
import { readTotals, writeTotals } from './counters.ts'
import { find } from './find.ts'
import { health } from './health.ts'
import { keep, stored } from './keep.ts'
import type { Verb, Verbs } from './protocol.ts'
import { findLetter } from './reading.ts'
import { dropRecord, getRecord, listKinds, listRecords, putRecord } from './records.ts'
import { remove } from './remove.ts'
import { tally } from './tally.ts'

/** A verb that may take long works in steps, and lets others have their turn in between. */
export type Steps<T> = Generator<undefined, T>

export type Work<V extends Verb> = (
  books: Books,
  ask: Verbs[V]['ask'],
) => Verbs[V]['answer'] | Steps<Verbs[V]['answer']>

/** How each verb is done, and in which kind of transaction. */
export const verbs: { [V in Verb]: { kind: 'read' | 'write'; work: Work<V> } } = {
  open: { kind: 'read', work: () => null },
  add: { kind: 'write', work: add },
  keep: { kind: 'write', work: keep },
  keepTotals: { kind: 'write', work: writeTotals },
  claim: { kind: 'write', work: claim },
  renew: { kind: 'write', work: renew },
  apply: { kind: 'write', work: apply },
  remove: { kind: 'write', work: remove },
  put: { kind: 'write', work: putRecord },
  drop: { kind: 'write', work: dropRecord },
  get: {
    kind: 'read',
    work: (books, ids) =>
      ids.flatMap((id) => {
        const found = findLetter(books, 'id', id, 'whole')
        return found ? [found.kept] : []
      }),
  },
  original: {
    kind: 'read',
    work: (books, id) => findLetter(books, 'id', id, 'captured')?.kept ?? null,
  },
  stored: { kind: 'read', work: stored },
  find: { kind: 'read', work: find },
  tally: { kind: 'read', work: tally },
  totals: { kind: 'read', work: ({ db, queues }) => readTotals(db, queues) },
  record: { kind: 'read', work: getRecord },
  records: { kind: 'read', work: listRecords },
  kinds: { kind: 'read', work: listKinds },
  health: { kind: 'read', work: health },
}
