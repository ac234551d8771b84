/*
 * A process that captures and settles, and tells of each on stdout as soon as it is acknowledged:
 * `telling.ts sqlite FILE full|relaxed COUNT` or `telling.ts spool FOLDER - COUNT`.
 */
import { writeSync } from 'node:fs'
import { RedriveError } from '../../src/errors.ts'
import { resolve } from '../../src/letter/moves.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { addSpool } from '../../src/stores/spool/spool.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../src/testing/index.ts'
import { markOf, settleMarkOf, toldOf } from './marks.ts'

const [kind, path, synchronous, count] = process.argv.slice(2) as [
  'sqlite' | 'spool',
  string,
  'full' | 'relaxed',
  string,
]

/** A store that is away whenever it is asked to keep something. */
function away(): Store {
  const store = memoryStore()
  store.add = () => Promise.reject(new RedriveError('STORE_UNAVAILABLE', 'the store is away'))
  return store
}

const store = kind === 'sqlite' ? sqliteStore({ path, synchronous }) : addSpool(away(), { path })
await store.open()
for (let n = 0; n < Number(count); n++) {
  const letter = aLetter({ queue: markOf(n), fingerprint: markOf(n) })
  await store.add([letter])
  writeSync(1, toldOf(markOf(n)))
  if (kind === 'spool') continue
  // Twice: a log in pages may cut one of them in two.
  const mark = settleMarkOf(n)
  const by = { at: letter.updatedAt, actor: mark, note: mark, guard: 'version' } as const
  await store.apply([resolve(letter, by)])
  writeSync(1, toldOf(mark))
}
await store.close()
