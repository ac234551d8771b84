import { script } from '../../backends/redis/script.ts'
import * as adding from './lua/adding.ts'
import * as changing from './lua/changing.ts'
import * as claiming from './lua/claiming.ts'
import { counts } from './lua/counts.ts'
import * as drift from './lua/drift.ts'
import { indexes } from './lua/indexes.ts'
import { base, letters } from './lua/letter.ts'
import { merging } from './lua/merging.ts'
import { moving } from './lua/moving.ts'
import { places } from './lua/places.ts'
import { dropRecord, listRecords, putRecord } from './lua/records.ts'
import * as scan from './lua/scan.ts'

const reading = letters + indexes + counts
const changes = reading + places + moving

/** Scripts that write wait for replicas, where `waitReplicas` is set. */
export const scripts = {
  add: script(changes + adding.add, true),
  evict: script(changes + adding.evict, true),
  keep: script(changes + adding.keep, true),
  apply: script(changes + changing.apply, true),
  applyAll: script(changes + merging + scan.scanning + scan.bulk, true),
  renew: script(changes + changing.renew, true),
  claim: script(changes + merging + claiming.claim, true),
  remove: script(changes + changing.remove, true),
  fetch: script(letters + claiming.fetch, false),
  find: script(reading + merging + scan.scanning + scan.find, false),
  checkLetters: script(changes + drift.checkLetters, true),
  checkEntries: script(changes + drift.checkEntries, true),
  checkWaits: script(base + drift.checkWaits, true),
  recount: script(reading + drift.recount, false),
  setCounts: script(base + drift.setCounts, true),
  keepTotals: script(base + adding.keepTotals, true),
  putRecord: script(base + putRecord, true),
  dropRecord: script(base + dropRecord, true),
  listRecords: script(base + listRecords, false),
} as const
