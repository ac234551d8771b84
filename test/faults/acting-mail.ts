/*
 * A process that does a few things to a mailbox in a SQLite file, each of them twice if it fails, and says of each whether it was acknowledged:
 * `acting-mail.ts FILE`. Somebody else has the file open, so that nothing moves out of its log when it is closed.
 */
import { writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Message } from '../../src/mailbox.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { attempt } from './attempt.ts'

const path = process.argv[2]!
const mailbox = sqliteMailbox({ path, name: 'work' })
let message: Message | undefined

const acts: [name: string, act: () => Promise<unknown>][] = [
  ['first', () => mailbox.send('first', { id: 'first' })],
  ['receive', async () => ([message] = await mailbox.receive({ waitSeconds: 5 }))],
  ['acknowledge', async () => message!.acknowledge()],
  ['second', () => mailbox.send('second', { id: 'second' })],
]

if (await attempt('open', () => mailbox.open())) {
  const other = new DatabaseSync(path)
  other.prepare('SELECT count(*) FROM messages').get()
  for (const [name, act] of acts) await attempt(name, act)
  other.close()
}
const { checks } = await mailbox.health()
writeSync(1, `health ${checks['journal_mode'] ?? 'unknown'}\n`)
await mailbox.close()
