/*
 * A process that sends, receives and acknowledges, and tells on stdout of each message as soon as it is sent: `telling-mail.ts FILE COUNT`.
 */
import { writeSync } from 'node:fs'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { markOf, toldOf } from './marks.ts'

const [path, count] = process.argv.slice(2) as [string, string]

const mailbox = sqliteMailbox({ path, name: 'work' })
await mailbox.open()
for (let n = 0; n < Number(count); n++) {
  await mailbox.send(markOf(n))
  writeSync(1, toldOf(markOf(n)))
  const [message] = await mailbox.receive({ waitSeconds: 20 })
  await message!.acknowledge()
}
await mailbox.close()
