/*
 * A process that does a few things to a SQLite file, each of them twice if it fails, and says of each whether it was
 * acknowledged: `acting.ts FILE`. It ends in order, whatever the disk does.
 */
import { writeSync } from 'node:fs'
import { RedriveError } from '../../src/errors.ts'
import { resolve } from '../../src/letter/moves.ts'
import type { ApplyResult } from '../../src/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { actedOn } from './acted-on.ts'
import { attempt } from './attempt.ts'

const store = sqliteStore({ path: process.argv[2]! })
const { first, second } = actedOn()
const by = { at: first.updatedAt, actor: 'ada', guard: 'version' } as const

const acts: [name: string, act: () => Promise<unknown>][] = [
  ['open', () => store.open()],
  ['add', () => store.add([first, second])],
  ['settle', async () => expectWritten(await store.apply([resolve(first, by)]))],
  ['remove', () => store.remove({ ids: [second.id] })],
]

/** A letter that was not kept cannot be settled; one that was settled by the first of two tries is. */
function expectWritten([result]: ApplyResult[]): void {
  if (result === 'missing') throw new RedriveError('LETTER_NOT_FOUND', 'it was not kept')
}

for (const [name, act] of acts) if (!(await attempt(name, act)) && name === 'open') break
// Whatever happened, the store must still answer.
const { checks } = await store.health()
writeSync(1, `health ${checks['journal_mode'] ?? 'unknown'}\n`)
await store.close()
