import { systemClock } from '../../clock/clock.ts'
import type { RedisConnection } from '../../backends/redis/connection.ts'

/** How long to wait before listening anew, once the connection for wake-ups broke. */
const againMs = 1000

/** Calls the listener for every message on the channel, until told to stop. */
export function listen(
  connection: RedisConnection,
  channel: string,
  heard: () => void,
): () => void {
  let stopped = false
  let leave = (): void => {}
  let cancel = (): void => {}
  const again = (): void => {
    cancel()
    if (stopped) return
    cancel = systemClock.timer(againMs, () => void start())
  }
  const start = async (): Promise<void> => {
    try {
      leave = await connection.subscribe(channel, heard, again)
      if (stopped) leave()
    } catch {
      again()
    }
  }
  void start()
  return () => {
    stopped = true
    cancel()
    leave()
  }
}
