/*
 * A process that runs a few actions on a mailbox in a SQLite file, retries each failed action once,
 * and prints whether each was acknowledged. Usage: `disk-fault-mailbox.ts FILE`. A second
 * connection keeps the file open, so that closing the mailbox does not run a checkpoint of the log.
 */
import { writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Message } from '../../src/mailbox.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { attempt } from './attempt.ts'

const path = process.argv[2]!
const mailbox = sqliteMailbox({ path, name: 'work' })
let message: Message | undefined

const actions: [name: string, run: () => Promise<unknown>][] = [
  ['first', () => mailbox.send('first', { id: 'first' })],
  ['receive', async () => ([message] = await mailbox.receive({ waitSeconds: 5 }))],
  ['acknowledge', async () => message!.acknowledge()],
  ['second', () => mailbox.send('second', { id: 'second' })],
]

if (await attempt('open', () => mailbox.open())) {
  const other = new DatabaseSync(path)
  other.prepare('SELECT count(*) FROM messages').get()
  for (const [name, run] of actions) await attempt(name, run)
  other.close()
}
const { checks } = await mailbox.health()
writeSync(1, `health ${checks['journal_mode'] ?? 'unknown'}\n`)
await mailbox.close()
