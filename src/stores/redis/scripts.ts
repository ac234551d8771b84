import { script as scriptOf, type Script } from '../../backends/redis/script.ts'
import * as adding from './lua/adding.ts'
import * as changing from './lua/changing.ts'
import * as claiming from './lua/claiming.ts'
import { counts } from './lua/counts.ts'
import * as drift from './lua/drift.ts'
import { indexes } from './lua/indexes.ts'
import { base, fetching, letters, withCells } from './lua/letter.ts'
import { merging } from './lua/merging.ts'
import { moving } from './lua/moving.ts'
import { places } from './lua/places.ts'
import { dropRecord, listRecords, putRecord } from './lua/records.ts'
import * as scan from './lua/scan.ts'

const reading = letters + indexes + counts
const changes = reading + places + moving

const script = (source: string, isReplicated: boolean): Script =>
  scriptOf(withCells(source), isReplicated)

/** Scripts that write wait for replicas, where `waitReplicas` is set. */
export const scripts = {
  add: script(changes + adding.add, true),
  evict: script(changes + adding.evict, true),
  keep: script(changes + adding.keep, true),
  apply: script(changes + changing.apply, true),
  applyAll: script(changes + changing.applyAll, true),
  renew: script(changes + changing.renew, true),
  claim: script(changes + merging + fetching + claiming.claim, true),
  remove: script(changes + changing.remove, true),
  fetch: script(letters + fetching + claiming.fetch, false),
  find: script(reading + merging + fetching + scan.scanning + scan.find, false),
  checkLetters: script(changes + drift.checkLetters, true),
  checkEntries: script(changes + drift.checkEntries, true),
  checkParts: script(base + drift.checkParts, true),
  recount: script(reading + drift.recount, false),
  setCounts: script(base + drift.setCounts, true),
  keepTotals: script(base + adding.keepTotals, true),
  putRecord: script(base + putRecord, true),
  dropRecord: script(base + dropRecord, true),
  listRecords: script(base + listRecords, false),
} as const
