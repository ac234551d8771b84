import { writeSync } from 'node:fs'
import { DeadLetterQueue } from '../../../src/queue.ts'

/*
 * A process that starts while its store is away, and never sees it: `late-child.ts URL SPOOL`. It
 * keeps letters until it is killed, and writes the number of each to stdout once it is
 * acknowledged.
 */
const [url, spoolPath] = process.argv.slice(2) as [string, string]
const dlq = await DeadLetterQueue.open(url, { spoolPath })
for (let number = 0; ; number++) {
  await dlq.enqueue({ type: 'mail', payload: number }, new Error('down'), { lane: 'a' })
  writeSync(1, `${number}\n`)
}
