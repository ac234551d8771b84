import { parentPort } from 'node:worker_threads'
import { nextTurn, systemClock } from '../../clock/clock.ts'
import type { AnyCall, Message, Report } from './protocol.ts'

/** Runs the calls of one file in the thread. Every batch is reported done exactly once. */
export interface FileHandler {
  /** Whether steps of long calls are left. */
  readonly isBusy?: boolean
  run(nowMs: number, calls: AnyCall[]): void
  step?(): void
  /** Whether something was committed that is not on disk yet. */
  readonly isUnflushed?: boolean
  flush?(): void
  close(): void
}

/** How long the thread must be idle before it flushes what is not on disk yet. */
const flushAfterMs = 2

/** Serves messages in a worker thread, one file at a time. Long calls take a step per turn. */
export function serve(
  open: (options: unknown, report: (one: Report) => void) => FileHandler,
): void {
  const port = parentPort!
  let handler: FileHandler | undefined
  let isStepping = false
  let cancelFlush = (): void => {}

  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
  const report = (one: Report): void => port.postMessage(one)

  const flush = (): void => {
    if (handler?.isUnflushed) handler.flush?.()
  }

  // After a turn another file may be open: its long calls go on.
  const isBusy = (): boolean => handler?.isBusy === true

  const takeSteps = async (): Promise<void> => {
    if (isStepping) return
    isStepping = true
    for (; isBusy(); await nextTurn()) handler?.step?.()
    isStepping = false
  }

  port.on('message', (message: Message) => {
    cancelFlush()
    if (message.kind === 'open') handler = open(message.options, report)
    else if (message.kind === 'batch') {
      handler?.run(message.nowMs, message.calls)
      if (isBusy()) void takeSteps()
      if (handler?.isUnflushed) cancelFlush = systemClock.timer(flushAfterMs, flush)
    } else if (message.kind === 'end') port.close()
    else {
      flush()
      handler?.close()
      handler = undefined
      report({ results: [], errors: [], events: [], isDone: true })
    }
  })
}
