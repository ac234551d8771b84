import { once } from 'node:events'
import { kafkaTap } from '../../src/taps/kafka.ts'

/*
 * A tap in a process of its own. Usage: `tap-process.ts URL TOPIC GROUP`. Prints each letter before
 * storing it, stores once stdin has a line, and stops when stdin ends.
 */
const [url, topic, groupId] = process.argv.slice(2) as [string, string, string]
const released = once(process.stdin, 'data')
const tap = kafkaTap({
  url,
  topics: [topic],
  groupId,
  sessionMs: 1000,
  keep: async ({ messageId }) => {
    console.log(`keeping ${messageId}`)
    await released
    console.log(`kept ${messageId}`)
  },
})
await tap.start()
await once(process.stdin, 'end')
await tap.stop()
