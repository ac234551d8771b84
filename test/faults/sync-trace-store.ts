/*
 * A process that captures and settles, and prints a marker as soon as each is acknowledged. Usage:
 * `sync-trace-store.ts sqlite FILE full|relaxed COUNT` or `sync-trace-store.ts spool FOLDER -
 * COUNT`.
 */
import { writeSync } from 'node:fs'
import { RedriveError } from '../../src/errors.ts'
import { resolve } from '../../src/letter/moves.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { addSpool } from '../../src/stores/spool/spool.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../src/testing/index.ts'
import { captureMarker, settleMarker, acknowledgedMarker } from './trace-markers.ts'

const [kind, path, synchronous, count] = process.argv.slice(2) as [
  'sqlite' | 'spool',
  string,
  'full' | 'relaxed',
  string,
]

/** A store that is unavailable for new letters. */
function unavailableStore(): Store {
  const store = memoryStore()
  store.add = () =>
    Promise.reject(new RedriveError('STORE_UNAVAILABLE', 'the store is unavailable'))
  return store
}

const store =
  kind === 'sqlite' ? sqliteStore({ path, synchronous }) : addSpool(unavailableStore(), { path })
await store.open()
for (let n = 0; n < Number(count); n++) {
  const letter = aLetter({ queue: captureMarker(n), fingerprint: captureMarker(n) })
  await store.add([letter])
  writeSync(1, acknowledgedMarker(captureMarker(n)))
  if (kind === 'spool') continue
  // The marker is written twice: a page boundary of the log may split one of them.
  const marker = settleMarker(n)
  const by = { at: letter.updatedAt, actor: marker, note: marker, guard: 'version' } as const
  await store.apply([resolve(letter, by)])
  writeSync(1, acknowledgedMarker(marker))
}
await store.close()
