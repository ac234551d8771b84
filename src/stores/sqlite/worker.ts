import { availableParallelism } from 'node:os'
import { receiveMessageOnPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../clock.ts'
import { Clerk } from './clerk.ts'
import type { Message, ThreadData } from './protocol.ts'

/*
 * The thread that keeps the file. It has no event loop: it sleeps on the bell, and between batches does the steps of what
 * takes long.
 */
const { port, bell: shared } = workerData as ThreadData
const bell = new Int32Array(shared)
const lookMs = availableParallelism() > 1 ? 0.2 : 0
let heard = 0
let brisk = false
let clerk: Clerk | undefined

for (let message = next(); message.kind !== 'end'; message = next()) {
  if (message.kind === 'file')
    clerk = new Clerk(message.options, (report) => port.postMessage(report))
  else if (message.kind === 'batch') clerk?.run(message.nowMs, message.calls)
  else {
    clerk?.close()
    clerk = undefined
    port.postMessage({ answers: [], done: true, woke: false })
  }
}
port.close()

function next(): Message {
  for (;;) {
    const received = receiveMessageOnPort(port)
    if (received) return received.message as Message
    if (clerk?.busy) clerk.step()
    else sleep()
  }
}

/**
 * Until the bell is rung, or not at all if it was rung since the last look. While batches follow each other closely the
 * thread looks out for the next instead of sleeping, since waking up takes as long as a good part of a commit; when the
 * last look was in vain, it sleeps at once.
 */
function sleep(): void {
  const startMs = systemClock.mono()
  const untilMs = startMs + (brisk ? lookMs : 0)
  while (systemClock.mono() < untilMs) if (Atomics.load(bell, 0) !== heard) break
  Atomics.wait(bell, 0, heard)
  heard = Atomics.load(bell, 0)
  brisk = systemClock.mono() - startMs < lookMs
}
