/*
 * A process that sends, receives and acknowledges, and tells of each on stdout as soon as it is done: `telling-mail.ts FILE COUNT`.
 */
import { writeSync } from 'node:fs'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { markOf, settleMarkOf, takeMarkOf, toldOf } from './marks.ts'

const [path, count] = process.argv.slice(2) as [string, string]

const mailbox = sqliteMailbox({ path, name: 'work' })
await mailbox.open()
for (let n = 0; n < Number(count); n++) {
  await mailbox.send(markOf(n))
  writeSync(1, toldOf(markOf(n)))
  const [message] = await mailbox.receive({ waitSeconds: 20 })
  writeSync(1, toldOf(takeMarkOf(n)))
  await message!.acknowledge()
  writeSync(1, toldOf(settleMarkOf(n)))
}
await mailbox.close()
