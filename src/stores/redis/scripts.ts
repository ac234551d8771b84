import { script } from '../../backends/redis/script.ts'
import * as adding from './lua/adding.ts'
import { rows } from './lua/rows.ts'
import * as claiming from './lua/claiming.ts'
import { counts } from './lua/counts.ts'
import * as drift from './lua/drift.ts'
import { merging } from './lua/merging.ts'
import { moving } from './lua/moving.ts'
import { places } from './lua/places.ts'
import { dropRecord, listRecords, putRecord } from './lua/records.ts'
import { scan } from './lua/scan.ts'
import * as settling from './lua/settling.ts'

const letters = rows + counts + places + moving

/** Scripts that write wait for replicas, where `waitReplicas` is set. */
export const scripts = {
  add: script(letters + adding.add, true),
  evict: script(letters + adding.evict, true),
  keep: script(letters + adding.keep, true),
  apply: script(letters + settling.apply, true),
  renew: script(letters + settling.renew, true),
  claim: script(letters + merging + claiming.claim, true),
  remove: script(letters + settling.remove, true),
  fetch: script(rows + claiming.fetch, false),
  scan: script(rows + counts + places + merging + scan, false),
  checkLetters: script(letters + drift.checkLetters, true),
  checkEntries: script(letters + drift.checkEntries, true),
  checkBelongings: script(rows + drift.checkBelongings, true),
  recount: script(rows + counts + drift.recount, false),
  setCounts: script(rows + drift.setCounts, true),
  setSources: script(letters + adding.setSources, true),
  keepTotals: script(rows + adding.keepTotals, true),
  putRecord: script(rows + putRecord, true),
  dropRecord: script(rows + dropRecord, true),
  listRecords: script(rows + listRecords, false),
} as const
