import type { Clock } from '../../clock/clock.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import { expire, maxSwept } from './statements.ts'

export interface SweeperOptions {
  connection: PostgresConnection
  mailbox: number
  clock: Clock
  /** 0: nothing expires. */
  retentionMs: number
  /** Receives the number of removed messages. */
  report: (count: number) => void
}

const everyMs = 1000

/** Removes expired messages. */
export class Sweeper {
  readonly #options: SweeperOptions
  #lastMs = -Infinity
  #sweeping: Promise<void> | undefined

  constructor(options: SweeperOptions) {
    this.#options = options
  }

  /** To be called when messages are received: sweeps in the background, at most once a second. */
  nudge(): void {
    const { retentionMs, clock } = this.#options
    if (retentionMs > 0 && !this.#sweeping && clock.mono() - this.#lastMs >= everyMs)
      this.#sweeping = this.#sweep()
  }

  async idle(): Promise<void> {
    await this.#sweeping
  }

  async #sweep(): Promise<void> {
    const { connection, mailbox, retentionMs, report, clock } = this.#options
    try {
      for (let count = maxSwept; count === maxSwept;) {
        const removed = await connection.execute(expire, [mailbox, retentionMs])
        count = removed.length
        report(count)
      }
    } catch {
      // Expired messages are not delivered, and the next sweep tries again.
    } finally {
      this.#lastMs = clock.mono()
      this.#sweeping = undefined
    }
  }
}
