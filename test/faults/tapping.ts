import { once } from 'node:events'
import { kafkaTap } from '../../src/taps/kafka.ts'

/*
 * A tap in a process of its own: `tapping.ts URL TOPIC GROUP`. Each letter goes to stdout as it is being kept, and is kept once
 * stdin says so; the tap is stopped when that ends.
 */
const [url, topic, groupId] = process.argv.slice(2) as [string, string, string]
const told = once(process.stdin, 'data')
const tap = kafkaTap({
  url,
  topics: [topic],
  groupId,
  sessionMs: 1000,
  keep: async ({ messageId }) => {
    console.log(`keeping ${messageId}`)
    await told
    console.log(`kept ${messageId}`)
  },
})
await tap.start()
await once(process.stdin, 'end')
await tap.stop()
