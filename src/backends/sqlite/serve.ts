import { availableParallelism } from 'node:os'
import { receiveMessageOnPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../clock/clock.ts'
import { unloaded } from './batch.ts'
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

/**
 * For how long the thread stays awake if the last time it was asked again within that time. A caller who awaits each call is mostly back by then, and
 * to wake the thread takes half as long.
 */
const awakeMs = availableParallelism() > 1 ? 0.15 : 0

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
  /** Whether the bell was rung again that soon, the last time. */
  let soon = false
  let keeper: Keeper | undefined

  const report = (said: Report): void => {
    const port = ports[reports++ % ports.length]!
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
    port.postMessage(said)
  }

  /** Until the bell is rung, or not at all if it was rung since the last look. Answers whether it was rung in time. */
  const sleep = (ms: number): boolean => {
    const startMs = systemClock.mono()
    const passedMs = (): number => systemClock.mono() - startMs
    if (soon) while (Atomics.load(bell, 0) === heard && passedMs() < awakeMs);
    const why = Atomics.wait(bell, 0, heard, ms)
    heard = Atomics.load(bell, 0)
    soon = passedMs() < awakeMs
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

  for (;;) {
    const message = next()
    if (Array.isArray(message)) keeper?.run(message[0], unloaded(message))
    else if (message.kind === 'file') keeper = keep(message.options, report)
    else if (message.kind === 'end') break
    else {
      if (keeper?.unflushed) keeper.flush?.()
      keeper?.close()
      keeper = undefined
      report({ answers: [] })
    }
  }
  for (const port of ports) port.close()
}
