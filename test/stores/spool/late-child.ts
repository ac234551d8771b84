import { writeSync } from 'node:fs'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'

/*
 * A process whose store is unreachable all the time: `late-child.ts URL SPOOL`. It captures letters
 * until it is killed, and prints the number of each acknowledged one.
 */
const [url, spoolPath] = process.argv.slice(2) as [string, string]
const dlq = await DeadLetterQueue.open(url, { spoolPath })
for (let number = 0; ; number++) {
  await dlq.enqueue({ type: 'mail', payload: number }, new Error('down'), { lane: 'a' })
  writeSync(1, `${number}\n`)
}
