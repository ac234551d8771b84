// Captures in an endless loop and prints each acknowledged id. The test kills this process.
import { writeSync } from 'node:fs'
import { DeadLetterQueue } from '../../src/queue/queue.ts'

const [url = '', count = '0'] = process.argv.slice(2)
const limit = Number(count) || Infinity
const dlq = await DeadLetterQueue.open(url)
const lane = async (): Promise<void> => {
  for (; captured < limit;) {
    const payload = { pid: process.pid, n: captured++ }
    const { id } = await dlq.enqueue({ type: 'a', payload }, new Error('Rate limit exceeded'))
    writeSync(1, `${id} ${JSON.stringify(payload)}\n`)
  }
}
let captured = 0
await Promise.all(Array.from({ length: 8 }, lane))
await dlq.close()
