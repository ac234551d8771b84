/*
 * A process that sends, receives and acknowledges messages, and prints a marker as soon as each
 * send resolves. Usage: `sync-trace-mailbox.ts FILE COUNT`.
 */
import { writeSync } from 'node:fs'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { captureMarker, acknowledgedMarker } from './trace-markers.ts'

const [path, count] = process.argv.slice(2) as [string, string]

const mailbox = sqliteMailbox({ path, name: 'work' })
await mailbox.open()
for (let n = 0; n < Number(count); n++) {
  await mailbox.send(captureMarker(n))
  writeSync(1, acknowledgedMarker(captureMarker(n)))
  const [message] = await mailbox.receive({ waitSeconds: 20 })
  await message!.acknowledge()
}
await mailbox.close()
