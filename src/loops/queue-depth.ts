import type { Clock } from '../clock/clock.ts'
import { toMs, type Timestamp } from '../letter/time.ts'
import type { Mailbox } from '../mailbox.ts'
import type { LoopEvent, Emit } from './events.ts'

export type DepthEvent = Extract<LoopEvent, { type: 'depth' }>

/** Size of a dead letter queue. */
export interface QueueDepth {
  /** For people. */
  name: string
  depth: number
  /**
   * When the oldest message became a dead letter. Absent if there is none, or if the broker does
   * not report it.
   */
  oldestAt?: Timestamp
}

/**
 * Counts the messages of a mailbox, hidden ones included. The oldest message is found where the
 * broker can browse.
 */
export async function measureMailbox(mailbox: Mailbox): Promise<QueueDepth> {
  const depth = await mailbox.approximateCount()
  const oldest = (await mailbox.browse?.({ limit: 1 }))?.messages[0]
  return { name: mailbox.name, depth, ...(oldest ? { oldestAt: oldest.enqueuedAt } : {}) }
}

export function depthEvent({ name, depth, oldestAt }: QueueDepth, nowMs: number): DepthEvent {
  const oldestAgeSeconds = oldestAt && Math.max(0, (nowMs - toMs(oldestAt)) / 1000)
  return {
    type: 'depth',
    mailbox: name,
    depth,
    ...(typeof oldestAgeSeconds === 'number' ? { oldestAgeSeconds } : {}),
  }
}

export interface DepthReportOptions {
  measure: () => Promise<QueueDepth>
  /** The name for the event of a failed measurement. */
  name: string
  everyMs: number
  clock: Clock
  emit: Emit
}

/**
 * Reports the depth of a queue at once and then every `everyMs`, with or without traffic. A
 * measurement starts after the previous one has ended, so a slow broker never has two. Returns a
 * function that stops it; a measurement in flight is then dropped.
 */
export function reportDepth({
  measure,
  name,
  everyMs,
  clock,
  emit,
}: DepthReportOptions): () => void {
  let stopped = false
  let cancel = (): void => {}
  const report = async (): Promise<void> => {
    const event = await Promise.resolve()
      .then(measure)
      .then(
        (measured): LoopEvent => depthEvent(measured, clock.now()),
        (error: unknown): LoopEvent => ({ type: 'error', during: `counting ${name}`, error }),
      )
    if (stopped) return
    emit(event)
    cancel = clock.timer(everyMs, () => void report())
  }
  void report()
  return () => {
    stopped = true
    cancel()
  }
}
