/*
 * A process that runs a few actions on a SQLite store, retries each failed action once, and prints
 * whether each was acknowledged. Usage: `disk-fault-store.ts FILE`. It exits normally even when the
 * disk fails.
 */
import { writeSync } from 'node:fs'
import { RedriveError } from '../../src/errors.ts'
import { resolve } from '../../src/letter/moves.ts'
import type { ApplyResult } from '../../src/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { sampleLetters } from './sample-letters.ts'
import { attempt } from './attempt.ts'

const store = sqliteStore({ path: process.argv[2]! })
const { first, second } = sampleLetters()
const by = { at: first.updatedAt, actor: 'ada', guard: 'version' } as const

const actions: [name: string, run: () => Promise<unknown>][] = [
  ['open', () => store.open()],
  ['add', () => store.add([first, second])],
  ['settle', async () => expectWritten(await store.apply([resolve(first, by)]))],
  ['remove', () => store.remove({ ids: [second.id] })],
]

/**
 * A conflict is fine: the first of two tries may have settled the letter. A missing letter is not.
 */
function expectWritten([result]: ApplyResult[]): void {
  if (result === 'missing') throw new RedriveError('LETTER_NOT_FOUND', 'the letter was not stored')
}

for (const [name, run] of actions) if (!(await attempt(name, run)) && name === 'open') break
// The store must still answer after any fault.
const { checks } = await store.health()
writeSync(1, `health ${checks['journal_mode'] ?? 'unknown'}\n`)
await store.close()
