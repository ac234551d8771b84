import type { Clock } from '../../clock/clock.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import { expire, maxSwept } from './statements.ts'

/** Removes messages that have expired. */
export interface Sweeping {
  /** To be called when messages are received: sweeps in the background, at most once a second. */
  nudge(): void
  idle(): Promise<void>
}

export interface SweepingOptions {
  connection: PostgresConnection
  mailbox: number
  clock: Clock
  /** 0: nothing expires. */
  retentionMs: number
  /** Receives how many messages were removed. */
  report: (count: number) => void
}

const everyMs = 1000

export function sweeping(options: SweepingOptions): Sweeping {
  const { connection, mailbox, clock, retentionMs, report } = options
  let lastMs = -Infinity
  let running: Promise<void> | undefined
  const sweep = async (): Promise<void> => {
    try {
      for (let count = maxSwept; count === maxSwept;) {
        const removed = await connection.execute(expire, [mailbox, retentionMs])
        count = removed.length
        report(count)
      }
    } catch {
      // What is left is delivered to nobody, and the next sweep tries again.
    } finally {
      lastMs = clock.mono()
      running = undefined
    }
  }
  return {
    nudge() {
      if (retentionMs > 0 && !running && clock.mono() - lastMs >= everyMs) running = sweep()
    },
    idle: async () => running,
  }
}
