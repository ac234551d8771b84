import { receiveMessageOnPort, workerData } from 'node:worker_threads'
import { Clerk } from './clerk.ts'
import type { Message, Report, ThreadData } from './protocol.ts'

/*
 * The thread that keeps the file. It has no event loop: it sleeps on the bell, and between batches does the steps of what
 * takes long.
 */
const { ports, bell: shared } = workerData as ThreadData
const bell = new Int32Array(shared)
let heard = 0
let reports = 0
let clerk: Clerk | undefined

for (let message = next(); message.kind !== 'end'; message = next()) {
  if (message.kind === 'file') clerk = new Clerk(message.options, report)
  else if (message.kind === 'batch') clerk?.run(message.nowMs, message.calls)
  else {
    clerk?.close()
    clerk = undefined
    report({ answers: [], done: true, woke: false })
  }
}
for (const port of ports) port.close()

function report(said: Report): void {
  const port = ports[reports++ % ports.length]!
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
  port.postMessage(said)
}

function next(): Message {
  for (;;) {
    const received = receiveMessageOnPort(ports[0]!)
    if (received) return received.message as Message
    if (clerk?.busy) clerk.step()
    else sleep()
  }
}

/** Until the bell is rung, or not at all if it was rung since the last look. */
function sleep(): void {
  Atomics.wait(bell, 0, heard)
  heard = Atomics.load(bell, 0)
}
