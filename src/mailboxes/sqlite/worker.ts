import { parentPort, workerData } from 'node:worker_threads'
import { Clerk } from './clerk.ts'
import { packReport, unpackBatch, type Crossing } from './crossing.ts'

/* The thread that keeps the file. An empty message closes it, and ends the thread. */
const port = parentPort!
const clerk = new Clerk((workerData as { path: string }).path)

port.on('message', (crossing: Crossing | null) => {
  if (crossing) {
    const batch = unpackBatch(crossing)
    const answer = packReport(clerk.run(batch), batch.calls)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
    port.postMessage(answer, [answer.bytes.buffer])
    return
  }
  clerk.close()
  port.close()
})
