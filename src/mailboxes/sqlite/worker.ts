import { parentPort, workerData } from 'node:worker_threads'
import { Clerk } from './clerk.ts'
import type { Batch } from './protocol.ts'

/* The thread that keeps the file. An empty message closes it, and ends the thread. */
const port = parentPort!
const clerk = new Clerk((workerData as { path: string }).path)

port.on('message', (batch: Batch | null) => {
  if (batch) {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
    port.postMessage(clerk.run(batch))
    return
  }
  clerk.close()
  port.close()
})
