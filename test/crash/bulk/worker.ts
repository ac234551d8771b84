import { openSync, writeSync } from 'node:fs'
import { systemClock } from '../../../src/clock/clock.ts'
import { connect } from '../../../src/connect/store.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { killStore, type KillPoint } from './kill-store.ts'
import { isRejected, options, queue } from './work.ts'

type At = KillPoint['at']

/** A worker that writes the id of each letter to the ledger before it runs it. */
const [url, ledger, after, at] = process.argv.slice(2) as [string, string, string?, At?]
process.once('disconnect', () => process.exit(3))
const file = openSync(ledger, 'a')
const store = await connect(url, systemClock)
const dlq = await DeadLetterQueue.open(
  after && at ? killStore(store, { after: Number(after), at }) : store,
  options,
)
dlq.handle(queue, async ({ letter }) => {
  writeSync(file, `${letter.id}\n`)
  if (isRejected(letter.id)) throw new Error('rejected')
})
dlq.start()
process.send!('ready')
