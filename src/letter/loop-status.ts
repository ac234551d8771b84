import type { Timestamp } from './time.ts'

export const loopKinds = ['main', 'eval', 'dlq-consumer'] as const
export type LoopKind = (typeof loopKinds)[number]

export const breakerStates = ['closed', 'open', 'half-open'] as const

/** Deliveries of a loop since it was created. */
export interface LoopCounts {
  received: number
  processed: number
  /** Deliveries that failed. The message is delivered again, or was refused. */
  failed: number
  /** Messages that were dead-lettered, or parked by a DLQConsumer. */
  dead: number
}

/** What a loop on a mailbox does. It contains no address, and nothing of messages or errors. */
export interface LoopStatus {
  name: string
  kind: LoopKind
  /** The name of the mailbox that it receives from. */
  mailbox: string
  /** The kind of broker: "redis", "rabbitmq". */
  broker: string
  /** Where dead or parked messages are stored. Absent: nowhere else. */
  deadLetters?: string
  running: boolean
  counts: LoopCounts
  /** Absent: the loop has no circuit breaker. `until`: when an open one lets a message run. */
  breaker?: { state: (typeof breakerStates)[number]; until?: Timestamp }
  /** When it last received or finished a message. Absent: never. */
  lastActivityAt?: Timestamp
  /** Why it receives nothing: the broker is unreachable. */
  problem?: string
}
