import { openSync, writeSync } from 'node:fs'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { isRejected, options, queue } from './work.ts'

/** A worker that writes the id of each letter to the ledger before it runs it. */
const [store, ledger] = process.argv.slice(2) as [string, string]
process.once('disconnect', () => process.exit(3))
const file = openSync(ledger, 'a')
const dlq = await DeadLetterQueue.open(store, options)
dlq.handle(queue, async ({ letter }) => {
  writeSync(file, `${letter.id}\n`)
  if (isRejected(letter.id)) throw new Error('rejected')
})
dlq.start()
process.send!('ready')
