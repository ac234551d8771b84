import type { Clock } from '../../clock.ts'
import { tellExpired } from '../expired.ts'
import type { Link } from './link.ts'
import { expire, maxSwept } from './statements.ts'

/** Removes what was kept too long, and counts it. */
export interface Sweeping {
  /** How many this mailbox has removed since it was opened. */
  readonly expired: number
  /** Counts some that were removed elsewhere. */
  add(count: number): void
  /** To be called when something is sent or received: looks now and then, and nobody waits for it. */
  nudge(): void
  idle(): Promise<void>
}

const everyMs = 1000

export function sweeping(
  link: Link,
  mailbox: number,
  clock: Clock,
  onExpired: ((count: number) => void) | undefined,
): Sweeping {
  let expired = 0
  let lastMs = -Infinity
  let running: Promise<void> | undefined
  const add = (count: number): void => {
    if (count === 0) return
    expired += count
    tellExpired(onExpired, count)
  }
  const sweep = async (): Promise<void> => {
    try {
      for (let count = maxSwept; count === maxSwept;) {
        const [gone] = await link.do([[expire, [mailbox]]])
        count = gone!.length
        add(count)
      }
    } catch {
      // Nobody is given what is left of them. The next turn tries again.
    } finally {
      lastMs = clock.mono()
      running = undefined
    }
  }
  return {
    get expired() {
      return expired
    },
    add,
    nudge() {
      if (!running && clock.mono() - lastMs >= everyMs) running = sweep()
    },
    idle: async () => running,
  }
}
