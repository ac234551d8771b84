import type { Method } from '../../backends/sqlite/dispatcher.ts'
import { add } from './add.ts'
import { apply, renew } from './apply.ts'
import { applyAll } from './bulk.ts'
import type { StoreContext } from './context.ts'
import { claim } from './claim.ts'
import { readTotals, writeTotals } from './counters.ts'
import { find } from './find.ts'
import { health } from './health.ts'
import { keep, stored } from './keep.ts'
import { loadLetters } from './letters.ts'
import type { Methods } from './protocol.ts'
import { dropRecord, getRecord, getRecords, listKinds, listRecords, putRecord } from './records.ts'
import { remove } from './remove.ts'
import { tally } from './tally.ts'

type MethodOf<M extends keyof Methods> = Method<
  StoreContext,
  Methods[M]['request'],
  Methods[M]['response']
>

export const methods: { [M in keyof Methods]: MethodOf<M> } = {
  open: { kind: 'read', run: () => null },
  add: { kind: 'write', run: add },
  keep: { kind: 'write', run: keep },
  keepTotals: { kind: 'write', run: writeTotals },
  claim: { kind: 'write', run: claim },
  renew: { kind: 'write', run: renew },
  apply: { kind: 'write', run: apply },
  applyAll: { kind: 'write', run: applyAll },
  remove: { kind: 'write', run: remove },
  put: { kind: 'write', run: putRecord },
  drop: { kind: 'write', run: dropRecord },
  get: { kind: 'read', run: (context, ids) => loadLetters(context, 'id', ids, 'whole') },
  original: {
    kind: 'read',
    run: (context, id) => loadLetters(context, 'id', [id], 'captured')[0] ?? null,
  },
  stored: { kind: 'read', run: stored },
  find: { kind: 'read', run: find },
  tally: { kind: 'read', run: tally },
  totals: { kind: 'read', run: readTotals },
  record: { kind: 'read', run: getRecord },
  records: { kind: 'read', run: listRecords },
  recordsOf: { kind: 'read', run: getRecords },
  kinds: { kind: 'read', run: listKinds },
  health: { kind: 'read', run: health },
}
