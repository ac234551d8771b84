import { receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { AnyCall, Message, Report, ThreadData } from './protocol.ts'

/** Who keeps the file in the thread. Every batch is reported done, once. */
export interface Keeper {
  /** Whether there are steps left to do of what takes long, for a keeper that has such. */
  readonly busy?: boolean
  run(nowMs: number, calls: AnyCall[]): void
  step?(): void
  /** Whether something was written that is not on disk yet, for a keeper that does not flush everything at once. */
  readonly unflushed?: boolean
  flush?(): void
  close(): void
}

/** For how long nobody may have asked for anything until what is not on disk yet is put there. */
const quietMs = 2

/**
 * The life of a thread that keeps a file. It has no event loop: it sleeps on the bell, and between batches does the steps of
 * what takes long.
 */
export function serve(keep: (options: unknown, report: (said: Report) => void) => Keeper): void {
  const { ports, bell: shared } = workerData as ThreadData
  const bell = new Int32Array(shared)
  let heard = 0
  let reports = 0
  let keeper: Keeper | undefined

  const report = (said: Report): void => {
    const port = ports[reports++ % ports.length]!
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
    port.postMessage(said)
  }

  /** Until the bell is rung, or not at all if it was rung since the last look. Answers whether it was rung in time. */
  const sleep = (ms: number): boolean => {
    const why = Atomics.wait(bell, 0, heard, ms)
    heard = Atomics.load(bell, 0)
    return why !== 'timed-out'
  }

  const next = (): Message => {
    for (;;) {
      const received = receiveMessageOnPort(ports[0]!)
      if (received) return received.message as Message
      if (keeper?.busy) keeper.step?.()
      else if (!sleep(keeper?.unflushed ? quietMs : Infinity)) keeper?.flush?.()
    }
  }

  for (let message = next(); message.kind !== 'end'; message = next()) {
    if (message.kind === 'file') keeper = keep(message.options, report)
    else if (message.kind === 'batch') keeper?.run(message.nowMs, message.calls)
    else {
      keeper?.close()
      keeper = undefined
      report({ answers: [], done: true })
    }
  }
  for (const port of ports) port.close()
}
